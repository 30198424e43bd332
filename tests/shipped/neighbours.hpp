// Plans that differ from a plan in one thing, priced by the cost model and simulated, without the search. Goes in: a
// composition and the space it is of. Comes out: the fastest of its neighbours. One thing is: a block or two over a
// cut; two stages' devices exchanged; a stage on another shape, idle GPUs included; another strategy of a stage; a
// stage split in two or two merged; the next smaller or larger microbatch; twice or half as many pipelines, of stages
// on half or twice the GPUs; one more or fewer in flight on the first stages. A plan for a runtime and its neighbours
// keep that runtime's rules, have the warm-up that it runs, and are simulated with its transfers; what all stages have
// in common there stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/composition.hpp"
#include "tangram/compose/given.hpp"
#include "tangram/model/model.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::shipped {

struct BestNeighbour {
  Nanoseconds own;         ///< of the plan itself
  Nanoseconds priced;      ///< of the plan as its neighbours are priced: that, or more where replicas share a member
  Nanoseconds time;        ///< of the fastest neighbour: never more than `own`
  std::string change;      ///< what it does otherwise; empty: nothing is faster
  std::int64_t tried = 0;  ///< neighbours that were simulated
  [[nodiscard]] double gain() const { return own.as_double() / time.as_double() - 1; }
};

/// What plans are made for.
struct Subject {
  const cluster::Fleet& fleet;
  const model::Model& model;
  runtime::Target target = runtime::Target::kGeneric;
};

/// Iteration time under 1F1B, as the simulator has it.
[[nodiscard]] Nanoseconds simulated(const compose::Composition& composition,
                                    runtime::Transfers transfers = runtime::Transfers::kOverlapped);

/// The plan as compose::price takes it.
[[nodiscard]] compose::GivenPipeline as_given(const compose::Composition& composition,
                                              const cluster::IslandLevel& level);

/// Shapes and microbatch sizes are those that `space` names, of classes that it leaves out any stage sizes; strategies
/// are the enumerator's.
[[nodiscard]] BestNeighbour best_neighbour(const compose::Composition& composition, const Subject& subject,
                                           const cluster::IslandHierarchy& hierarchy, const compose::Space& space);

/// As the command line finds them: islands, and the plans of a schedule, or of any that the target has.
[[nodiscard]] cluster::IslandHierarchy islands_of(const cluster::Fleet& fleet);
[[nodiscard]] compose::SearchResult search_for(const Subject& subject, const cluster::IslandHierarchy& hierarchy,
                                               std::optional<runtime::Schedule> schedule);

/// What is worth a complaint, as a gain.
inline constexpr double kWorthwhile = 0.001;

struct BestPlan {
  compose::Composition plan;
  cluster::IslandHierarchy hierarchy;
  compose::Space space;
  [[nodiscard]] const cluster::IslandLevel& level() const {
    return hierarchy.levels[static_cast<std::size_t>(plan.level)];
  }
};

/// Plans as the command line does, but for equal pipelines alone: the fastest of the shortlist that the runtime can
/// start. Empty: there is none.
[[nodiscard]] std::optional<BestPlan> best_plan(const Subject& subject);

/// Of that plan. Empty: there is none.
[[nodiscard]] std::optional<BestNeighbour> neighbour_of_best(const Subject& subject);

}  // namespace tangram::shipped
