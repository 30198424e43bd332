#include "ensemble_price.hpp"

#include <algorithm>
#include <iterator>

#include "tangram/compose/links.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::ensemble {

namespace {

std::vector<compose::Placement> placements_of(const compose::StageChoice& stage) {
  std::vector<compose::Placement> placements;
  placements.reserve(stage.parts.size());
  for (const compose::PartChoice& part : stage.parts) placements.push_back({part.island_class, part.gpus});
  return placements;
}

class EnsemblePricer {
 public:
  EnsemblePricer(const model::Model& model, const cluster::IslandLevel& level, compose::Ensemble& ensemble)
      : model_(model), level_(level), ensemble_(ensemble) {}

  void run() {
    Nanoseconds last_backward;
    Nanoseconds step;
    for (std::size_t g = 0; g < ensemble_.groups.size(); ++g) {
      for (compose::StageChoice& stage : ensemble_.groups[g].composition.stages) set_end(g, stage);
      compose::Composition& composition = ensemble_.groups[g].composition;
      const Nanoseconds end = end_of(composition);
      const Nanoseconds own = step_of(composition);
      composition.closed_form = end + own;
      last_backward = std::max(last_backward, end);
      step = std::max(step, own);
    }
    ensemble_.closed_form = last_backward + step;
  }

 private:
  void set_end(std::size_t group, compose::StageChoice& stage) const {
    const std::vector<compose::Placement> placements = placements_of(stage);
    const compose::SyncGroup sync_group = sync_group_at(group, stage, placements);
    const compose::Reach reach = reach_of(ensemble_.groups[group].composition);
    const model::SliceSignature slice = model::signature(model_, stage.first, stage.last);
    stage.A = Nanoseconds(0);
    for (const compose::PartChoice& part : stage.parts) {
      const cost::StageCost& cost = part.plan.cost;
      const Nanoseconds crossing =
          compose::crossing_sync(model_, level_, sync_group, reach, placements, slice, cost.gradient_volume);
      stage.crossing = crossing;
      const Nanoseconds exposed = cost::exposed_sync(cost.gradient_sync + crossing, cost.backward);
      stage.A = std::max(stage.A, cost.forward + cost.backward + exposed);
    }
  }

  [[nodiscard]] compose::Reach reach_of(const compose::Composition& composition) const {
    std::vector<compose::Placement> all;
    bool together = true;
    for (const compose::StageChoice& stage : composition.stages) {
      std::ranges::copy(placements_of(stage), std::back_inserter(all));
      for (const compose::PartChoice& part : stage.parts) {
        const compose::PartChoice& first = composition.stages.front().parts.front();
        together = together && part.member != compose::PartChoice::kAnyMember && part.member == first.member;
      }
    }
    return compose::narrowest_reach(level_, all, together);
  }

  [[nodiscard]] compose::SyncGroup sync_group_at(std::size_t group, const compose::StageChoice& stage,
                                                 const std::vector<compose::Placement>& placements) const {
    compose::SyncGroup sync_group =
        compose::sync_group_of(level_, ensemble_.groups[group].composition.replicas, placements);
    for (std::size_t g = 0; g < ensemble_.groups.size(); ++g) {
      if (g == group) continue;
      const compose::Composition& other = ensemble_.groups[g].composition;
      std::vector<std::vector<compose::Placement>> stages;
      for (const compose::StageChoice& s : other.stages) {
        if (s.first < stage.last && stage.first < s.last) stages.push_back(placements_of(s));
      }
      compose::join(level_, placements, other.replicas, stages, sync_group);
    }
    return sync_group;
  }

  // A + (M-1) P of src/chain/README.md.
  static Nanoseconds end_of(const compose::Composition& composition) {
    Nanoseconds latency;
    Nanoseconds a;
    for (std::size_t s = composition.stages.size(); s-- > 0;) {
      const compose::StageChoice& stage = composition.stages[s];
      const Nanoseconds c = s + 1 < composition.stages.size() ? stage.to_next.latency : Nanoseconds(0);
      a = std::max(a + stage.F + c, stage.A + latency + c * 2);
      latency += stage.T + c * 2;
    }
    return a + composition.period * (composition.microbatches - 1);
  }

  static Nanoseconds step_of(const compose::Composition& composition) {
    Nanoseconds step;
    for (const compose::StageChoice& stage : composition.stages) step = std::max(step, stage.o);
    return step;
  }

  const model::Model& model_;
  const cluster::IslandLevel& level_;
  compose::Ensemble& ensemble_;
};

}  // namespace

void price_ensemble(const model::Model& model, const cluster::IslandLevel& level, compose::Ensemble& ensemble) {
  EnsemblePricer(model, level, ensemble).run();
}

}  // namespace tangram::ensemble
