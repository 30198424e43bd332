// Plans that differ from a plan in one thing, priced by the cost model and simulated, without the search. Goes in: a
// composition and the space it is of. Comes out: the fastest of its neighbours. One thing is: a block or two over a
// cut; two stages' devices exchanged; a stage on another shape, idle GPUs included; another strategy of a stage; a
// stage split in two or two merged; the next smaller or larger microbatch; one more or fewer in flight on the first
// stages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/composition.hpp"
#include "tangram/model/model.hpp"

namespace tangram::shipped {

struct BestNeighbour {
  Nanoseconds own;         ///< of the plan itself
  Nanoseconds time;        ///< of the fastest neighbour: never more than `own`
  std::string change;      ///< what it does otherwise; empty: nothing is faster
  std::int64_t tried = 0;  ///< neighbours that were simulated
  [[nodiscard]] double gain() const { return own.as_double() / time.as_double() - 1; }
};

/// Iteration time under 1F1B, as the simulator has it.
[[nodiscard]] Nanoseconds simulated(const compose::Composition& composition);

/// Shapes and microbatch sizes are those that `space` names; strategies are the enumerator's.
[[nodiscard]] BestNeighbour best_neighbour(const compose::Composition& composition, const model::Model& model,
                                           const cluster::IslandHierarchy& hierarchy, const compose::Space& space);

/// What is worth a complaint, as a gain.
inline constexpr double kWorthwhile = 0.001;

/// Plans as the command line does, but for equal pipelines alone, and judges the fastest of the shortlist. Empty: there
/// is no plan.
[[nodiscard]] std::optional<BestNeighbour> neighbour_of_best(const cluster::Fleet& fleet, const model::Model& model);

}  // namespace tangram::shipped
