// From counted classes to named ranks. Goes in: a composition, the island level it was made on, fleet and model.
// Comes out: a launch plan without predictions of the whole (the simulator adds those).
#pragma once

#include "tangram/compose/composition.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

/// Places larger shapes first (sizes divide each other, so that counting is enough to place them), packs pipelines of
/// one replica close together, numbers ranks pipeline by pipeline, stage by stage. A composition that does not fit the
/// level's islands is a bug: TANGRAM_ASSERT.
[[nodiscard]] LaunchPlan assemble(const compose::Composition& composition, const cluster::Fleet& fleet,
                                  const cluster::IslandLevel& level, const model::Model& model);

/// The transfers of one boundary: every sample and sequence position of `from` reaches each rank of `to` that works on
/// it exactly once; under tp the sender that owns the sequence shard sends it. `tokens` is the sequence length at the
/// cut, `bytes_per_sample` the activation of one sample there.
[[nodiscard]] std::vector<Transfer> boundary_transfers(const Stage& from, const Stage& to, std::int64_t tokens,
                                                       Bytes bytes_per_sample);

/// What each runtime would say to the plan's shape: megatron, flagscale and mimo constraints with stable codes
/// (generic is always ok).
[[nodiscard]] std::vector<TargetVerdict> target_verdicts(const LaunchPlan& plan);

}  // namespace tangram::plan
