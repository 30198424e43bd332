// What a runtime asks of a plan, told without the search: of the strategies of stages before they are tried, and of a
// whole plan, whose ranks are placed and judged by plan::target_verdicts. Goes in: compositions. Comes out: what may be
// tried, and whether the runtime can start the result.
#pragma once

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/composition.hpp"
#include "tangram/model/model.hpp"
#include "tangram/parallelizer/parallelizer.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::shipped {

/// The job with the techniques that plans of so many equal pipelines may use.
[[nodiscard]] model::Model model_for(runtime::Target target, model::Model model, int replicas);

/// What the stages of the plan's neighbours must have. Of a runtime with one set of degrees for all stages: that of the
/// plan, and its recompute mode; of one whose stages differ: the tp of tied ends.
[[nodiscard]] parallelizer::Demands demands_near(runtime::Target target, const compose::Composition& plan,
                                                 const model::Model& model);

/// Whether the members and islands of the level hold all pipelines.
[[nodiscard]] bool is_placeable(const compose::Composition& plan, const cluster::IslandLevel& level);

/// Whether it can be placed and the runtime can start it.
[[nodiscard]] bool is_runnable(runtime::Target target, const compose::Composition& plan, const cluster::Fleet& fleet,
                               const cluster::IslandLevel& level, const model::Model& model);

}  // namespace tangram::shipped
