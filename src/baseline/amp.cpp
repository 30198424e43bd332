// AMP (Li et al., NeurIPS 2022): tp x dp x pp alike for all stages, layers cut by a program over the profiled times.
//
//   T = (M-1) max t_s + sum t_s + sum boundaries + max over stages 2 (dp-1)/dp P / bandwidth
//
// The program knows no memory. It takes one profile for all stages, the mean of the types weighted by their GPUs; the
// repaired mode takes each stage's own slowest type and refuses what does not fit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "partition.hpp"
#include "planners.hpp"
#include "row.hpp"
#include "tangram/base/at.hpp"

namespace tangram::baseline {

namespace {

class AmpSearch {
 public:
  AmpSearch(const PlannerInput& input, Mode mode, const Budget& budget) : input_(input), mode_(mode), budget_(budget) {
    for (int k = 0; k < static_cast<int>(input.kinds.size()); ++k) kinds_.push_back(k);
    row_ = row_of(input, kinds_);
  }

  Proposals run() {
    int node = input_.kinds.front().per_node;
    for (const GpuKind& kind : input_.kinds) node = std::min(node, kind.per_node);
    const auto gpus = static_cast<std::int64_t>(row_.size());
    for (int tp = 1; tp <= node; tp *= 2) {
      if (gpus % tp != 0) continue;
      for (const std::int64_t dp : divisors_of(gpus / tp)) {
        const std::int64_t pp = gpus / tp / dp;
        if (pp > input_.blocks || input_.batch % dp != 0) continue;
        for (const std::int64_t samples : input_.sample_counts()) {
          if ((input_.batch / dp) % samples != 0) continue;
          if (result_.effort.examined >= budget_.plans) {
            result_.effort.cut = true;
            break;
          }
          ++result_.effort.layouts;
          ++result_.effort.examined;
          propose(tp, static_cast<int>(dp), static_cast<int>(pp), samples);
        }
      }
    }
    keep_best(result_.drafts, budget_.kept);
    return std::move(result_);
  }

 private:
  using Stages = std::vector<std::vector<Replica>>;

  /// Seconds of each unit on a stage.
  [[nodiscard]] std::vector<double> unit_seconds(const std::vector<Replica>& stage) const {
    std::vector<double> result(static_cast<std::size_t>(input_.units()), 0);
    const Replica& like = stage.front();
    const double all = input_.gpus();
    for (std::size_t u = 0; u < result.size(); ++u) {
      const auto unit = static_cast<int>(u);
      if (mode_ == Mode::kFaithful) {
        for (const int k : kinds_) {
          const double share = at(input_.kinds, k).gpus / all;
          result[u] += share * input_.seconds(k, like.tp, like.samples, unit, unit + 1);
        }
      } else {
        for (const Replica& r : stage)
          result[u] = std::max(result[u], input_.seconds(r.kind, r.tp, r.samples, unit, unit + 1));
      }
    }
    return result;
  }

  [[nodiscard]] bool fits(const std::vector<Replica>& stage, std::int64_t held, int first, int last) const {
    return std::ranges::all_of(stage, [&](const Replica& replica) {
      const GridPoint* point = input_.at(replica.kind, replica.tp, replica.samples);
      if (point == nullptr) return false;
      double bytes = 0;
      double working = 0;
      for (int u = first; u < last; ++u) {
        const UnitProfile& unit = at(point->units, u);
        bytes += unit.state + static_cast<double>(held) * unit.activation;
        working = std::max(working, unit.working);
      }
      return bytes + working <= at(input_.kinds, replica.kind).memory;
    });
  }

  /// Bytes/s of the narrowest network that the stage's GPUs share.
  [[nodiscard]] double bandwidth(const std::vector<Replica>& stage) const {
    double slowest = std::numeric_limits<double>::infinity();
    const int gpus = static_cast<int>(stage.size()) * stage.front().tp;
    for (const Replica& replica : stage) {
      const GpuKind& kind = at(input_.kinds, replica.kind);
      slowest =
          std::min(slowest, gpus <= kind.per_node && replica.kind == stage.front().kind ? kind.inside : kind.outside);
    }
    return slowest;
  }

  [[nodiscard]] double sync(const std::vector<Replica>& stage, int first, int last) const {
    const GridPoint* point = input_.at(stage.front().kind, stage.front().tp, stage.front().samples);
    const auto dp = static_cast<double>(stage.size());
    double bytes = 0;
    for (int u = first; u < last; ++u) bytes += at(point->units, u).parameters * input_.gradient_bytes;
    return 2 * (dp - 1) / dp * bytes / bandwidth(stage);
  }

  [[nodiscard]] double claimed(const Stages& stages, const std::vector<std::vector<double>>& prefix,
                               const std::vector<int>& cuts, std::int64_t microbatches, double boundary) const {
    double slowest = 0;
    double sum = 0;
    double exchange = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const double seconds = at(prefix[s], cuts[s + 1]) - at(prefix[s], cuts[s]);
      slowest = std::max(slowest, seconds);
      sum += seconds;
      exchange = std::max(exchange, sync(stages[s], cuts[s], cuts[s + 1]));
    }
    return static_cast<double>(microbatches - 1) * slowest + sum + boundary * static_cast<double>(stages.size() - 1) +
           exchange;
  }

  void propose(int tp, int dp, int pp, std::int64_t samples) {
    const auto stages = uniform_replicas(row_, pp, dp, tp, samples);
    if (!stages) return;
    const std::int64_t microbatches = input_.batch / dp / samples;
    std::vector<std::vector<double>> prefix;
    for (const auto& stage : *stages) {
      auto& sums = prefix.emplace_back(1, 0.0);
      for (const double seconds : unit_seconds(stage)) sums.push_back(sums.back() + seconds);
    }
    CutProblem problem{input_.units(), pp, {}, {}};
    problem.seconds = [&](int s, int first, int last) {
      const auto& sums = at(prefix, s);
      return at(sums, last) - at(sums, first);
    };
    if (mode_ == Mode::kRepaired) {
      problem.fits = [&](int s, int first, int last) {
        return fits(at((*stages), s), std::min<std::int64_t>(pp - s, microbatches), first, last);
      };
    }
    const auto cuts = fastest_cuts(problem);
    if (cuts.empty()) return;
    double network = std::numeric_limits<double>::infinity();
    for (const GpuKind& kind : input_.kinds) network = std::min(network, kind.outside);
    const double boundary = static_cast<double>(samples) * input_.activation / network;
    Draft draft;
    draft.claimed = claimed(*stages, prefix, cuts, microbatches, boundary);
    if (!std::isfinite(draft.claimed)) return;
    ++result_.effort.costed;
    draft.common = replica_degrees(input_.model, tp);
    DraftPipeline pipeline{samples * dp, microbatches, {}};
    for (std::size_t s = 0; s < stages->size(); ++s) pipeline.stages.push_back({cuts[s], cuts[s + 1], (*stages)[s]});
    draft.pipelines.push_back(std::move(pipeline));
    result_.drafts.push_back(std::move(draft));
  }

  const PlannerInput& input_;
  Mode mode_;
  const Budget& budget_;
  std::vector<int> kinds_;
  std::vector<int> row_;
  Proposals result_;
};

class AmpPlanner : public BaselinePlanner {
 public:
  [[nodiscard]] const PlannerInfo& info() const override {
    static const PlannerInfo info{"amp",
                                  "one set of degrees everywhere, layers balanced (Li et al., NeurIPS 2022)",
                                  {"cp", "ep", "sp", "zero", "recompute", "mixed_stages", "replicas"}};
    return info;
  }
  [[nodiscard]] Proposals propose(const PlannerInput& input, Mode mode, const Budget& budget) const override {
    return AmpSearch(input, mode, budget).run();
  }
};

}  // namespace

std::unique_ptr<BaselinePlanner> make_amp() { return std::make_unique<AmpPlanner>(); }

}  // namespace tangram::baseline
