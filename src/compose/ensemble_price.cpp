#include "ensemble_price.hpp"

#include <algorithm>
#include <iterator>

#include "tangram/compose/links.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::compose {

namespace {

std::vector<Placement> placements_of(const StageChoice& stage) {
  std::vector<Placement> placements;
  placements.reserve(stage.parts.size());
  for (const PartChoice& part : stage.parts) placements.push_back({part.island_class, part.gpus});
  return placements;
}

class EnsemblePricer {
 public:
  EnsemblePricer(const model::Model& model, const cluster::IslandLevel& level, Ensemble& ensemble)
      : model_(model), level_(level), ensemble_(ensemble) {}

  void run() {
    Nanoseconds last_backward;
    Nanoseconds step;
    for (std::size_t g = 0; g < ensemble_.groups.size(); ++g) {
      for (StageChoice& stage : ensemble_.groups[g].composition.stages) set_end(g, stage);
      Composition& composition = ensemble_.groups[g].composition;
      const Nanoseconds end = end_of(composition);
      const Nanoseconds own = step_of(composition);
      composition.closed_form = end + own;
      last_backward = std::max(last_backward, end);
      step = std::max(step, own);
    }
    ensemble_.closed_form = last_backward + step;
  }

 private:
  void set_end(std::size_t group, StageChoice& stage) const {
    const std::vector<Placement> placements = placements_of(stage);
    const Meeting meeting = meeting_at(group, stage, placements);
    const Reach reach = reach_of(ensemble_.groups[group].composition);
    const model::SliceSignature slice = model::signature(model_, stage.first, stage.last);
    stage.A = Nanoseconds(0);
    for (const PartChoice& part : stage.parts) {
      const cost::StageCost& cost = part.plan.cost;
      const Nanoseconds crossing =
          crossing_sync(model_, level_, meeting, reach, placements, slice, cost.gradient_volume);
      stage.crossing = crossing;
      const Nanoseconds exposed = cost::exposed_sync(cost.gradient_sync + crossing, cost.backward);
      stage.A = std::max(stage.A, cost.forward + cost.backward + exposed);
    }
  }

  [[nodiscard]] Reach reach_of(const Composition& composition) const {
    std::vector<Placement> all;
    bool together = true;
    for (const StageChoice& stage : composition.stages) {
      std::ranges::copy(placements_of(stage), std::back_inserter(all));
      for (const PartChoice& part : stage.parts) {
        const PartChoice& first = composition.stages.front().parts.front();
        together = together && part.member != PartChoice::kAnyMember && part.member == first.member;
      }
    }
    return narrowest_reach(level_, all, together);
  }

  [[nodiscard]] Meeting meeting_at(std::size_t group, const StageChoice& stage,
                                   const std::vector<Placement>& placements) const {
    Meeting meeting = meeting_of(level_, ensemble_.groups[group].composition.replicas, placements);
    for (std::size_t g = 0; g < ensemble_.groups.size(); ++g) {
      if (g == group) continue;
      const Composition& other = ensemble_.groups[g].composition;
      std::vector<std::vector<Placement>> stages;
      for (const StageChoice& s : other.stages) {
        if (s.first < stage.last && stage.first < s.last) stages.push_back(placements_of(s));
      }
      join(level_, placements, other.replicas, stages, meeting);
    }
    return meeting;
  }

  // A + (M-1) P of README.md.
  static Nanoseconds end_of(const Composition& composition) {
    Nanoseconds latency;
    Nanoseconds a;
    for (std::size_t s = composition.stages.size(); s-- > 0;) {
      const StageChoice& stage = composition.stages[s];
      const Nanoseconds c = s + 1 < composition.stages.size() ? stage.to_next.latency : Nanoseconds(0);
      a = std::max(a + stage.F + c, stage.A + latency + c * 2);
      latency += stage.T + c * 2;
    }
    return a + composition.period * (composition.microbatches - 1);
  }

  static Nanoseconds step_of(const Composition& composition) {
    Nanoseconds step;
    for (const StageChoice& stage : composition.stages) step = std::max(step, stage.o);
    return step;
  }

  const model::Model& model_;
  const cluster::IslandLevel& level_;
  Ensemble& ensemble_;
};

}  // namespace

void price_ensemble(const model::Model& model, const cluster::IslandLevel& level, Ensemble& ensemble) {
  EnsemblePricer(model, level, ensemble).run();
}

}  // namespace tangram::compose
