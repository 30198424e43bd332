// The walk of Metis over orders of types, groups, batches and strategies.
#include "metis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "planners.hpp"
#include "row.hpp"
#include "tangram/base/at.hpp"

namespace tangram::baseline {

namespace {

constexpr std::int64_t kMostSamples = 16;  // of a replica, as profiled

/// GPUs of each kind that are given to it: both program and method know powers of two alone.
std::vector<int> usable_gpus(const PlannerInput& input) {
  std::vector<std::size_t> order(input.kinds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t k) {
    return std::pair(input.seconds(static_cast<int>(k), 1, 1, 0, input.units()), k);
  });
  int room = 1;
  while (room * 2 <= input.gpus()) room *= 2;
  std::vector<int> gpus(input.kinds.size(), 0);
  for (const std::size_t k : order) {
    gpus[k] = std::min(room, input.kinds[k].gpus);
    room -= gpus[k];
  }
  return gpus;
}

class MetisSearch {
 public:
  MetisSearch(const PlannerInput& input, Mode mode, const Budget& budget)
      : input_(input),
        mode_(mode),
        budget_(budget),
        metis_(input, mode),
        usable_(usable_gpus(input)),
        divisors_(divisors_of(input.batch)) {
    widest_ = 1;
    for (const int tp : input.tensor_degrees()) widest_ = std::max(widest_, tp);
  }

  Proposals run() {
    const int all = std::accumulate(usable_.begin(), usable_.end(), 0);
    if (all < input_.gpus()) {
      result_.notes.push_back(
          fmt::format("it takes powers of two: {} of {} GPUs, the fastest types first", all, input_.gpus()));
    }
    std::vector<int> kinds;
    for (int k = 0; k < static_cast<int>(usable_.size()); ++k) {
      if (at(usable_, k) > 0) kinds.push_back(k);
    }
    bool first = true;
    do {
      if (!order(kinds, all, first)) break;
      first = false;
    } while (std::ranges::next_permutation(kinds).found);
    keep_best(result_.drafts, budget_.kept);
    return std::move(result_);
  }

 private:
  /// One order of types. In every order after the first the original takes the layouts of two stages for those of one.
  bool order(const std::vector<int>& kinds, int all, bool first) {
    MetisLayout layout;
    layout.kinds = kinds;
    for (const int kind : kinds) layout.row.insert(layout.row.end(), static_cast<std::size_t>(at(usable_, kind)), kind);
    const int most = std::min(all, input_.units());
    for (int stages = 1; stages <= most; ++stages) {
      const bool slip = mode_ == Mode::kFaithful && !first && stages == 1 && most > 1;
      const bool goes_on = for_device_groups(all, slip ? 2 : stages, MetisSettings{}, [&](const DeviceGroups& groups) {
        layout.groups = groups;
        layout.costed_stages = stages;
        return batches(layout);
      });
      if (!goes_on) return false;
    }
    return true;
  }

  bool batches(MetisLayout& layout) {
    for (const std::int64_t count : divisors_ | std::views::reverse) {
      if (result_.effort.examined >= budget_.plans) {
        result_.effort.cut = true;
        return false;
      }
      ++result_.effort.layouts;
      layout.batches = count;
      strategies(layout);
    }
    return true;
  }

  [[nodiscard]] bool valid(const MetisLayout& layout, const std::vector<MetisStrategy>& strategies) const {
    return std::ranges::all_of(strategies, [&](const MetisStrategy& strategy) {
      const std::int64_t samples = input_.batch / strategy.dp / layout.batches;
      const bool whole = samples * strategy.dp * layout.batches == input_.batch;
      return samples >= 1 && samples <= kMostSamples && strategy.tp <= widest_ && (whole || mode_ == Mode::kFaithful);
    });
  }

  /// One path: data parallelism everywhere, then tensor parallelism in its place where memory is shortest.
  void strategies(const MetisLayout& layout) {
    std::vector<MetisStrategy> current;
    for (const int gpus : layout.groups) current.push_back({gpus, 1});
    std::vector<double> headroom;
    for (;;) {
      if (valid(layout, current)) {
        ++result_.effort.examined;
        int attempts = 0;
        const auto stages = metis_.stages(layout, current);
        const auto cuts = stages.empty() ? std::vector<int>{} : metis_.partition(layout, stages, attempts, headroom);
        if (!cuts.empty()) keep(layout, stages, cuts);
        if (mode_ == Mode::kFaithful && !cuts.empty() && attempts == 1) return;
      }
      auto* next = narrowest(current, headroom);
      if (next == nullptr) return;
      *next = {next->dp / 2, next->tp * 2};
    }
  }

  /// Where tensor parallelism grows next.
  static MetisStrategy* narrowest(std::vector<MetisStrategy>& strategies, const std::vector<double>& headroom) {
    MetisStrategy* chosen = nullptr;
    double least = 0;
    for (std::size_t s = 0; s < strategies.size(); ++s) {
      if (strategies[s].dp == 1) continue;
      const double key = headroom.empty() ? 1.0 / strategies[s].dp : headroom[s];
      if (chosen != nullptr && key >= least) continue;
      chosen = &strategies[s];
      least = key;
    }
    return chosen;
  }

  /// The original has no time for a share of a stage's samples of which a power of two is more than was profiled.
  [[nodiscard]] static bool is_profiled(const MetisStage& stage) {
    return std::ranges::all_of(stage.replicas,
                               [](const Replica& replica) { return replica.samples < 2 * kMostSamples; });
  }

  void keep(const MetisLayout& layout, const std::vector<MetisStage>& stages, const std::vector<int>& cuts) {
    const double claimed = metis_.cost(layout, stages, cuts);
    if (!std::isfinite(claimed)) return;
    if (mode_ == Mode::kFaithful && !std::ranges::all_of(stages, is_profiled)) return;
    ++result_.effort.costed;
    Draft draft;
    draft.claimed = claimed;
    DraftPipeline pipeline{input_.batch / layout.batches, layout.batches, {}};
    int widest = 1;
    for (const MetisStage& stage : stages) widest = std::max(widest, stage.strategy.tp);
    draft.common = replica_degrees(input_.model, widest);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      pipeline.stages.push_back({cuts[s], cuts[s + 1], stages[s].replicas});
      if (stages[s].straddles) draft.label = Label::kInexpressible;
    }
    if (draft.label == Label::kInexpressible) draft.reason = "a replica has GPUs of two types";
    if (layout.costed_stages < static_cast<int>(stages.size()) && draft.label == Label::kOk) {
      draft.label = Label::kMisCosted;
      draft.reason = fmt::format("the claim is of the first of {} stages", stages.size());
    }
    draft.pipelines.push_back(std::move(pipeline));
    result_.drafts.push_back(std::move(draft));
    if (static_cast<std::int64_t>(result_.drafts.size()) >= 2 * budget_.kept) keep_best(result_.drafts, budget_.kept);
  }

  const PlannerInput& input_;
  Mode mode_;
  const Budget& budget_;
  Metis metis_;
  std::vector<int> usable_;
  std::vector<std::int64_t> divisors_;  // of the batch
  int widest_ = 1;
  Proposals result_;
};

class MetisPlanner : public BaselinePlanner {
 public:
  [[nodiscard]] const PlannerInfo& info() const override {
    static const PlannerInfo info{"metis",
                                  "stages of GPU groups, dp and tp of each, layers by speed (Um et al., ATC 2024)",
                                  {"cp", "ep", "sp", "zero", "recompute", "replicas"}};
    return info;
  }
  [[nodiscard]] Proposals propose(const PlannerInput& input, Mode mode, const Budget& budget) const override {
    return MetisSearch(input, mode, budget).run();
  }
};

}  // namespace

std::unique_ptr<BaselinePlanner> make_metis() { return std::make_unique<MetisPlanner>(); }

}  // namespace tangram::baseline
