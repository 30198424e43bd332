// What runtimes would make of a job that was planned for none in particular. Goes in: plans at hand, the best one and
// those near it. Comes out: the time of a plan for each runtime, under its own semantics, that spends no more than the
// options let it. A look takes a share of the search's time: only plans that are faster than those at hand are of
// interest, as far as the runtime can run these, with few labels, without timetables. Where a runtime has one set of
// degrees for all stages, only those that the plans at hand use are tried, by the built-in parallelizer. `--target`
// looks at all of them.
#pragma once

#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/compose/composition.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::planner {

/// Whether a plan with these options says so.
[[nodiscard]] bool looks_at_runtimes(const PlanOptions& options, const cluster::Fleet& fleet);

/// In the order of the runtimes' rows; those for models of several modules only where the model has some.
[[nodiscard]] std::vector<plan::RuntimeLook> look_at_runtimes(std::vector<compose::Composition> near,
                                                              const cluster::Fleet& fleet, const model::Model& model,
                                                              const PlanOptions& options,
                                                              const compose::ProgressCallback& progress);

}  // namespace tangram::planner
