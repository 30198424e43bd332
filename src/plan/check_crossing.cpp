// Gradients that replicas exchange across hosts: the plan says how long that takes, and no network of the fleet makes
// it shorter than what is worked out here.
#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "findings.hpp"
#include "tangram/base/at.hpp"

namespace tangram::plan {

namespace {

/// A part of a stage in one pipeline, which holds the stage's gradients.
struct Holder {
  std::set<std::size_t> nodes;
  int members = 1;
};

class CrossingJudge {
 public:
  CrossingJudge(const LaunchPlan& plan, const Recomputed& recomputed, const cluster::Fleet& fleet, Findings& findings)
      : plan_(plan), recomputed_(recomputed), fleet_(fleet), findings_(findings), nodes_(fleet) {}

  void judge() {
    if (!cuts_alike()) return;  // stages meet in groups of their own
    const std::size_t stages = plan_.pipelines.front().stages.size();
    for (std::size_t position = 0; position < stages; ++position) judge(position);
  }

 private:
  [[nodiscard]] const Stage& stage_at(const Pipeline& pipeline, std::size_t position) const {
    return plan_.stage(at(pipeline.stages, position));
  }

  [[nodiscard]] bool cuts_alike() const {
    const Pipeline& first = plan_.pipelines.front();
    return std::ranges::all_of(plan_.pipelines, [&](const Pipeline& pipeline) {
      if (pipeline.stages.size() != first.stages.size()) return false;
      for (std::size_t k = 0; k < first.stages.size(); ++k) {
        if (stage_at(pipeline, k).chunks != stage_at(first, k).chunks) return false;
      }
      return true;
    });
  }

  [[nodiscard]] Holder holder_of(const Part& part) const {
    Holder holder{{}, part.members};
    for (int i = 0; i < part.strategy.degrees.gpus(); ++i) {
      if (const auto node = nodes_.find(plan_.rank(part, i).host)) holder.nodes.insert(*node);
    }
    return holder;
  }

  [[nodiscard]] std::vector<Holder> holders_at(std::size_t position) const {
    std::vector<Holder> holders;
    for (const Pipeline& pipeline : plan_.pipelines) {
      for (const Part& part : stage_at(pipeline, position).parts) holders.push_back(holder_of(part));
    }
    return holders;
  }

  /// Of the fastest network between their hosts; without limit where they share a host.
  [[nodiscard]] double bandwidth_between(const Holder& a, const Holder& b) const {
    double best = 0;
    for (const std::size_t i : a.nodes) {
      if (b.nodes.contains(i)) return std::numeric_limits<double>::infinity();
      for (const std::size_t j : b.nodes) best = std::max(best, fleet_.between(i, j).bandwidth.value());
    }
    return best;
  }

  void judge(std::size_t position) {
    const std::vector<Holder> holders = holders_at(position);
    double slowest = std::numeric_limits<double>::infinity();
    int members = holders.front().members;
    for (std::size_t h = 1; h < holders.size(); ++h) {
      slowest = std::min(slowest, bandwidth_between(holders[h - 1], holders[h]));
      members = std::min(members, holders[h].members);
    }
    if (!(slowest > 0) || slowest == std::numeric_limits<double>::infinity()) return;
    const cluster::Link link{BytesPerSecond(slowest), Nanoseconds(0)};
    for (const Pipeline& pipeline : plan_.pipelines) {
      judge_stage(stage_at(pipeline, position), static_cast<int>(holders.size()), link, members);
    }
  }

  void judge_stage(const Stage& stage, int holders, const cluster::Link& link, int members) {
    const std::vector<RecomputedPart>& parts = at(recomputed_, stage.id);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (!parts[p].known) continue;  // reported already
      const std::int64_t crossing = crossing_of(stage.parts[p].predicted, parts[p].predicted);
      const Nanoseconds least = cost::replica_sync(parts[p].gradient_volume, holders, link, members);
      if (Nanoseconds(crossing).as_double() >= least.as_double() * (1 - kRounding) - 1) continue;
      findings_.add("sync-better-than-fleet", at_part(stage.id, p),
                    "replicas exchange gradients across hosts in " + std::to_string(crossing) +
                        " ns, which takes the fleet's fastest networks " + std::to_string(least.value()));
    }
  }

  static constexpr double kRounding = 1e-9;  // shares are quotients of bandwidths
  const LaunchPlan& plan_;
  const Recomputed& recomputed_;
  const cluster::Fleet& fleet_;
  Findings& findings_;
  NodesByHost nodes_;
};

}  // namespace

void check_crossing(const LaunchPlan& plan, const Recomputed& recomputed, const cluster::Fleet& fleet,
                    Findings& findings) {
  CrossingJudge(plan, recomputed, fleet, findings).judge();
}

}  // namespace tangram::plan
