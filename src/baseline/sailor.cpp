// Sailor's search: stages of equally many layers, one number of samples and one dp for all; of each stage a dynamic
// program decides how many replicas each type gives.
#include "sailor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "partition.hpp"
#include "planners.hpp"
#include "row.hpp"
#include "tangram/base/at.hpp"

namespace tangram::baseline {

namespace {

/// What the rest of a pipeline is at best, in the program's own order: one figure, not a frontier.
struct Rest {
  double seconds = std::numeric_limits<double>::infinity();  ///< joined, with its microbatches
  double first = 0;                                          ///< of its first stage, and to send from there
  double straggler = 0;
  double sum = 0;
  double exchange = 0;
  SailorStage stage;
  const Rest* next = nullptr;
};

/// One number of stages, samples and replicas.
class Program {
 public:
  Program(const PlannerInput& input, Mode mode, const Sailor& sailor, std::vector<int> cuts, std::int64_t samples,
          int dp, std::vector<std::vector<int>> tp, std::int64_t& steps)
      : input_(input),
        mode_(mode),
        sailor_(sailor),
        cuts_(std::move(cuts)),
        samples_(samples),
        dp_(dp),
        tp_(std::move(tp)),
        steps_(steps),
        microbatches_(sailor_microbatches(input.batch, samples, dp)),
        order_(alphabet(input)) {}

  const Rest& solve(std::size_t depth, const std::vector<int>& left) {
    const auto key = std::pair(depth, left);
    if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
    Choice choice{depth, left, std::vector<int>(left.size(), 0), {}, 0, {}};
    for (const std::string& region : regions()) {
      choice.region = region;
      share_out(choice, 0, dp_);
    }
    return memo_.emplace(key, std::move(choice.best)).first->second;
  }

 private:
  /// One stage and how the program looks through what it may be made of.
  struct Choice {
    std::size_t depth;
    const std::vector<int>& left;  ///< GPUs of each kind
    std::vector<int> counts;       ///< replicas of each kind
    std::string region;
    double before;  ///< time by itself of the last stage that was looked at
    Rest best;
  };

  /// Types in alphabetical order, as the program counts them.
  static std::vector<std::size_t> alphabet(const PlannerInput& input) {
    std::vector<std::size_t> order(input.kinds.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t kind) { return std::pair(input.kinds[kind].name, kind); });
    return order;
  }

  [[nodiscard]] std::set<std::string> regions() const {
    std::set<std::string> names;
    for (const GpuKind& kind : input_.kinds) names.insert(kind.region);
    return names;
  }

  /// All ways to give `replicas` to the kinds from the `at`th on; the gradients of a stage stay in one region.
  void share_out(Choice& choice, std::size_t at, int replicas) {
    if (steps_ <= 0) return;
    if (at == order_.size()) {
      if (replicas == 0) consider(choice);
      return;
    }
    const std::size_t kind = order_[at];
    const int tp = tp_[choice.depth][kind];
    const bool here = tp > 0 && input_.kinds[kind].region == choice.region;
    const int most = here ? std::min(replicas, choice.left[kind] / tp) : 0;
    for (int count = 0; count <= most; ++count) {
      choice.counts[kind] = count;
      share_out(choice, at + 1, replicas - count);
    }
    choice.counts[kind] = 0;
  }

  [[nodiscard]] SailorStage stage_of(const Choice& choice) const {
    SailorStage stage{cuts_[choice.depth], cuts_[choice.depth + 1], {}};
    for (const std::size_t kind : order_) {
      if (choice.counts[kind] == 0) continue;
      stage.shares.push_back({static_cast<int>(kind), tp_[choice.depth][kind], choice.counts[kind]});
    }
    return stage;
  }

  void consider(Choice& choice) {
    --steps_;
    Rest here;
    here.stage = stage_of(choice);
    const double alone = sailor_.alone(here.stage, samples_, dp_);
    if (choice.depth + 2 == cuts_.size()) {
      close(choice, here, alone);
      return;
    }
    // The original passes over a stage that takes as long as the last one, whatever it would leave to the others.
    if (mode_ == Mode::kFaithful && alone == choice.before) return;
    choice.before = alone;
    precede(choice, here);
  }

  /// The last stage goes by its time alone, its update included.
  void close(Choice& choice, Rest& here, double alone) const {
    here.first = here.straggler = here.sum = sailor_.compute(here.stage, samples_);
    here.exchange = sailor_.sync(here.stage, dp_);
    here.seconds = alone;
    if (here.seconds < choice.best.seconds) choice.best = std::move(here);
  }

  void precede(Choice& choice, Rest& here) {
    std::vector<int> left = choice.left;
    for (const SailorShare& share : here.stage.shares) at(left, share.kind) -= share.count * share.tp;
    const Rest& next = solve(choice.depth + 1, left);
    if (!std::isfinite(next.seconds)) return;
    const double seconds = sailor_.compute(here.stage, samples_);
    const double sent = sailor_.send(here.stage, next.stage, samples_);
    here.first = seconds + sent;
    here.straggler = std::max({here.first, next.first + sent, next.straggler});
    here.sum = seconds + 2 * sent + next.sum;
    here.exchange = std::max(sailor_.sync(here.stage, dp_), next.exchange);
    here.next = &next;
    here.seconds = static_cast<double>(microbatches_ - 1) * here.straggler + here.sum + here.exchange;
    if (here.seconds < choice.best.seconds) choice.best = std::move(here);
  }

  const PlannerInput& input_;
  Mode mode_;
  const Sailor& sailor_;
  std::vector<int> cuts_;
  std::int64_t samples_;
  int dp_;
  std::vector<std::vector<int>> tp_;  // [stage][kind]; 0: the kind has too little memory
  std::int64_t& steps_;
  std::int64_t microbatches_;
  std::vector<std::size_t> order_;
  std::map<std::pair<std::size_t, std::vector<int>>, Rest> memo_;
};

class SailorSearch {
 public:
  SailorSearch(const PlannerInput& input, Mode mode, const Budget& budget)
      : input_(input), mode_(mode), budget_(budget), sailor_(input, mode), steps_(budget.steps) {
    for (const GpuKind& kind : input.kinds) gpus_.push_back(kind.gpus);
  }

  Proposals run() {
    const int most = std::min(input_.gpus(), mode_ == Mode::kFaithful ? input_.units() : input_.blocks);
    for (int stages = 1; stages <= most; ++stages) {
      for (const std::int64_t samples : input_.sample_counts()) {
        ++result_.effort.layouts;
        for (int rule = 0; rule < rules(); ++rule) replicas(stages, samples, rule);
      }
    }
    result_.effort.examined = budget_.steps - std::max<std::int64_t>(steps_, 0);
    result_.effort.cut = steps_ <= 0;
    keep_best(result_.drafts, budget_.kept);
    return std::move(result_);
  }

 private:
  /// Which types take as little tensor parallelism as they can: the original always has the first of the alphabet do
  /// so, and no other.
  [[nodiscard]] int rules() const { return mode_ == Mode::kFaithful ? 1 : 1 << std::min<std::size_t>(gpus_.size(), 4); }
  [[nodiscard]] bool takes_least(std::size_t kind, int rule) const {
    if (mode_ == Mode::kRepaired) return kind < 4 && (rule >> kind & 1) != 0;
    const auto [first, last] = std::ranges::minmax_element(input_.kinds, {}, &GpuKind::name);
    return first->name != last->name && input_.kinds[kind].name == first->name;
  }

  [[nodiscard]] std::vector<std::vector<int>> degrees(const std::vector<int>& cuts, std::int64_t samples,
                                                      int rule) const {
    std::vector<std::vector<int>> tp;
    const auto stages = static_cast<int>(cuts.size()) - 1;
    for (int s = 0; s < stages; ++s) {
      auto& row = tp.emplace_back();
      for (std::size_t k = 0; k < gpus_.size(); ++k) {
        const auto kind = static_cast<int>(k);
        const int first = at(cuts, s);
        const int last = at(cuts, s + 1);
        const int least = sailor_.least_tp(kind, samples, first, last, stages - 1 - s);
        row.push_back(least == 0 || takes_least(k, rule)
                          ? least
                          : std::max(least, sailor_.scaling_tp(kind, samples, first, last)));
      }
    }
    if (mode_ == Mode::kFaithful) drop_short_kinds(tp);
    return tp;
  }

  /// The original leaves out a type that has too little memory for any one of the stages.
  static void drop_short_kinds(std::vector<std::vector<int>>& tp) {
    for (std::size_t k = 0; k < tp.front().size(); ++k) {
      if (std::ranges::none_of(tp, [k](const auto& stage) { return stage[k] == 0; })) continue;
      for (auto& stage : tp) stage[k] = 0;
    }
  }

  /// Fewer replicas only as long as that is faster.
  void replicas(int stages, std::int64_t samples, int rule) {
    const auto cuts = even_cuts(input_.units(), stages);
    const auto tp = degrees(cuts, samples, rule);
    double before = std::numeric_limits<double>::infinity();
    for (const int dp : replica_counts(samples)) {
      if (dp * stages > input_.gpus() || steps_ <= 0) continue;
      Program program(input_, mode_, sailor_, cuts, samples, dp, tp, steps_);
      const Rest& best = program.solve(0, gpus_);
      if (!std::isfinite(best.seconds)) continue;
      ++result_.effort.costed;
      if (best.seconds >= before) return;
      keep(best, samples, dp);
      before = best.seconds;
    }
  }

  /// The fewest replicas for each number of microbatches, descending; in the repaired mode only those that share the
  /// batch evenly. The original has a table of replicas that ends before the number of GPUs.
  [[nodiscard]] std::vector<int> replica_counts(std::int64_t samples) const {
    std::vector<int> counts;
    std::int64_t microbatches = 0;
    const int most = mode_ == Mode::kFaithful ? std::max(1, input_.gpus() - 1) : input_.gpus();
    for (int dp = 1; dp <= most && dp * samples <= input_.batch; ++dp) {
      const std::int64_t now = sailor_microbatches(input_.batch, samples, dp);
      const bool whole = input_.batch % (samples * dp) == 0;
      if (now != microbatches && (whole || mode_ == Mode::kFaithful)) counts.push_back(dp);
      microbatches = now;
    }
    std::ranges::reverse(counts);
    return counts;
  }

  void keep(const Rest& best, std::int64_t samples, int dp) {
    Draft draft;
    draft.claimed = best.seconds;
    DraftPipeline pipeline{samples * dp, sailor_microbatches(input_.batch, samples, dp), {}};
    int widest = 1;
    for (const Rest* rest = &best; rest != nullptr; rest = rest->next) {
      DraftStage stage{rest->stage.first, rest->stage.last, {}};
      for (const SailorShare& share : rest->stage.shares) {
        stage.replicas.insert(stage.replicas.end(), static_cast<std::size_t>(share.count),
                              {share.kind, share.tp, samples});
        widest = std::max(widest, share.tp);
      }
      pipeline.stages.push_back(std::move(stage));
    }
    draft.common = replica_degrees(input_.model, widest);
    draft.pipelines.push_back(std::move(pipeline));
    result_.drafts.push_back(std::move(draft));
  }

  const PlannerInput& input_;
  Mode mode_;
  const Budget& budget_;
  Sailor sailor_;
  std::int64_t steps_;
  std::vector<int> gpus_;
  Proposals result_;
};

class SailorPlanner : public BaselinePlanner {
 public:
  [[nodiscard]] const PlannerInfo& info() const override {
    static const PlannerInfo info{"sailor",
                                  "equal layers, replicas of a stage on several types (Strati et al., SOSP 2025)",
                                  {"cp", "ep", "sp", "zero", "recompute", "replicas"}};
    return info;
  }
  [[nodiscard]] Proposals propose(const PlannerInput& input, Mode mode, const Budget& budget) const override {
    return SailorSearch(input, mode, budget).run();
  }
};

}  // namespace

std::unique_ptr<BaselinePlanner> make_sailor() { return std::make_unique<SailorPlanner>(); }

}  // namespace tangram::baseline
