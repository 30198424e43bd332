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

namespace tangram::baseline {

namespace {

/// What the rest of a pipeline is at best, in the program's own order: one figure, not a frontier.
struct Rest {
  double seconds = std::numeric_limits<double>::infinity();  ///< joined, with its microbatches
  double straggler = 0;
  double sum = 0;
  double exchange = 0;
  SailorStage stage;
  const Rest* next = nullptr;
};

/// One number of stages, samples and replicas.
class Program {
 public:
  Program(const PlannerInput& input, const Sailor& sailor, std::vector<int> cuts, std::int64_t samples, int dp,
          std::vector<std::vector<int>> tp, std::int64_t& steps)
      : input_(input),
        sailor_(sailor),
        cuts_(std::move(cuts)),
        samples_(samples),
        dp_(dp),
        tp_(std::move(tp)),
        steps_(steps),
        microbatches_(sailor_microbatches(input.batch, samples, dp)) {}

  const Rest& solve(std::size_t depth, const std::vector<int>& left) {
    const auto key = std::pair(depth, left);
    if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
    Rest best;
    std::vector<int> counts(left.size(), 0);
    for (const std::string& region : regions()) share_out(depth, region, 0, dp_, left, counts, best);
    return memo_.emplace(key, std::move(best)).first->second;
  }

 private:
  [[nodiscard]] std::set<std::string> regions() const {
    std::set<std::string> names;
    for (const GpuKind& kind : input_.kinds) names.insert(kind.region);
    return names;
  }

  /// All ways to give `replicas` to the kinds from `kind` on; the gradients of a stage stay in one region.
  void share_out(std::size_t depth, const std::string& region, std::size_t kind, int replicas,
                 const std::vector<int>& left, std::vector<int>& counts, Rest& best) {
    if (steps_ <= 0) return;
    if (kind == left.size()) {
      if (replicas == 0) consider(depth, left, counts, best);
      return;
    }
    const int tp = tp_[depth][kind];
    const bool here = tp > 0 && input_.kinds[kind].region == region;
    const int most = here ? std::min(replicas, left[kind] / tp) : 0;
    for (int count = most; count >= 0; --count) {
      counts[kind] = count;
      share_out(depth, region, kind + 1, replicas - count, left, counts, best);
    }
    counts[kind] = 0;
  }

  void consider(std::size_t depth, const std::vector<int>& left, const std::vector<int>& counts, Rest& best) {
    --steps_;
    SailorStage stage{cuts_[depth], cuts_[depth + 1], {}};
    std::vector<int> rest = left;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      if (counts[k] == 0) continue;
      stage.shares.push_back({static_cast<int>(k), tp_[depth][k], counts[k]});
      rest[k] -= counts[k] * tp_[depth][k];
    }
    const double seconds = sailor_.compute(stage, samples_);
    Rest here;
    here.straggler = seconds;
    here.sum = seconds;
    here.exchange = sailor_.sync(stage, dp_);
    if (depth + 2 < cuts_.size()) {
      const Rest& next = solve(depth + 1, rest);
      if (!std::isfinite(next.seconds)) return;
      const double sent = sailor_.send(stage, next.stage, samples_);
      // The last stage sends its gradients where the one before it sends activations.
      here.straggler = std::max(seconds + sent, next.next == nullptr ? next.sum + sent : next.straggler);
      here.sum += 2 * sent + next.sum;
      here.exchange = std::max(here.exchange, next.exchange);
      here.next = &next;
    } else if (depth == 0) {
      here.sum += sailor_.update(stage, samples_);
    }
    here.seconds = static_cast<double>(microbatches_ - 1) * here.straggler + here.sum + here.exchange;
    here.stage = std::move(stage);
    if (here.seconds < best.seconds) best = std::move(here);
  }

  const PlannerInput& input_;
  const Sailor& sailor_;
  std::vector<int> cuts_;
  std::int64_t samples_;
  int dp_;
  std::vector<std::vector<int>> tp_;  // [stage][kind]; 0: the kind has too little memory
  std::int64_t& steps_;
  std::int64_t microbatches_;
  std::map<std::pair<std::size_t, std::vector<int>>, Rest> memo_;
};

class Search {
 public:
  Search(const PlannerInput& input, Mode mode, const Budget& budget)
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
    if (gpus_.size() == 1) return false;
    const auto first = std::ranges::min_element(input_.kinds, {}, &GpuKind::name);
    return input_.kinds[kind].name == first->name;
  }

  [[nodiscard]] std::vector<std::vector<int>> degrees(const std::vector<int>& cuts, std::int64_t samples,
                                                      int rule) const {
    std::vector<std::vector<int>> tp;
    const auto stages = static_cast<int>(cuts.size()) - 1;
    for (int s = 0; s < stages; ++s) {
      auto& row = tp.emplace_back();
      for (std::size_t k = 0; k < gpus_.size(); ++k) {
        const auto kind = static_cast<int>(k);
        const auto c = static_cast<std::size_t>(s);
        const int least = sailor_.least_tp(kind, samples, cuts[c], cuts[c + 1], stages - 1 - s);
        row.push_back(least == 0 || takes_least(k, rule) ? least : std::max(least, sailor_.scaling_tp(kind, samples)));
      }
    }
    return tp;
  }

  /// Fewer replicas only as long as that is faster.
  void replicas(int stages, std::int64_t samples, int rule) {
    const auto cuts = even_cuts(input_.units(), stages);
    const auto tp = degrees(cuts, samples, rule);
    double before = std::numeric_limits<double>::infinity();
    for (const int dp : replica_counts(samples)) {
      if (dp * stages > input_.gpus() || steps_ <= 0) continue;
      Program program(input_, sailor_, cuts, samples, dp, tp, steps_);
      const Rest& best = program.solve(0, gpus_);
      if (!std::isfinite(best.seconds)) continue;
      ++result_.effort.costed;
      keep(best, samples, dp);
      if (best.seconds >= before) return;
      before = best.seconds;
    }
  }

  /// The most replicas of each number of microbatches, descending; in the repaired mode only those that share the batch
  /// evenly.
  [[nodiscard]] std::vector<int> replica_counts(std::int64_t samples) const {
    std::vector<int> counts;
    std::int64_t microbatches = 0;
    for (int dp = 1; dp <= input_.gpus() && dp * samples <= input_.batch; ++dp) {
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
    return Search(input, mode, budget).run();
  }
};

}  // namespace

std::unique_ptr<BaselinePlanner> make_sailor() { return std::make_unique<SailorPlanner>(); }

}  // namespace tangram::baseline
