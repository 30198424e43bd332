// From counted classes to named ranks. Goes in: a composition (or pipelines whose GPUs are already named), the island
// level it was made on, fleet and model. Comes out: a launch plan without predictions of the whole (the simulator adds
// those).
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "tangram/compose/composition.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

struct GpuSlot {
  std::size_t node = 0;
  int gpu = 0;     ///< as the host numbers it
  int island = 0;  ///< of the level
  auto operator<=>(const GpuSlot&) const = default;
};

struct PlacedPart {
  int members = 1;
  std::vector<GpuSlot> gpus;  ///< member by member
  int member = -1;            ///< counted over the level: where it is, if that is one and it was looked up (locate)
};

/// One pipeline on named GPUs: [stage][part], as its composition has them. `composition` must outlive the call; its
/// `replicas` and `samples` are not looked at.
struct PlacedPipeline {
  const compose::Composition* composition = nullptr;
  std::vector<std::vector<PlacedPart>> parts;
  std::int64_t samples = 0;  ///< of the pipeline, in no more microbatches than the composition has; 0: all are whole
};

/// Numbers ranks pipeline by pipeline, stage by stage. Stages that lie in one member hand over inside it, whatever
/// their compositions count on. The closed form is left 0. Of `profiles` the plan keeps the rows its parts were costed
/// with and the curves of their groups.
[[nodiscard]] LaunchPlan assemble(const std::vector<PlacedPipeline>& pipelines, const cluster::Fleet& fleet,
                                  const cluster::IslandLevel& level, const model::Model& model,
                                  const cost::ProfileSet* profiles = nullptr);

/// Places larger shapes first (sizes divide each other, so that counting is enough to place them), packs pipelines of
/// one replica close together, and assembles them. A composition that does not fit the level's islands is a bug:
/// TANGRAM_ASSERT. With `near`, islands and members that are interchangeable are chosen so that many GPUs keep the
/// layers and degrees they have in that plan. The closed form is the composition's, or, where stages turn out to lie
/// closer to each other than that counts on, the plan's on `runtime`.
[[nodiscard]] LaunchPlan assemble(const compose::Composition& composition, const cluster::Fleet& fleet,
                                  const cluster::IslandLevel& level, const model::Model& model,
                                  const cost::ProfileSet* profiles = nullptr, const LaunchPlan* near = nullptr,
                                  runtime::Target runtime = runtime::Target::kGeneric);

/// Every group on what it has of the level, placed as a composition of its own.
[[nodiscard]] LaunchPlan assemble(const compose::Ensemble& ensemble, const cluster::Fleet& fleet,
                                  const cluster::IslandLevel& level, const model::Model& model,
                                  const cost::ProfileSet* profiles = nullptr);

/// The transfers of one boundary. Every GPU of a stage owns one shard of the microbatch: samples part by part and
/// replica by replica (cost::Degrees), the sequence cut into cp ranges and each of those into tp ranges. A transfer
/// is a non-empty intersection of a sender's and a receiver's shard, so that each byte crosses the boundary once. With
/// sequence parallelism a shard is what the rank works on; without it the receiving tp group gathers the shards over
/// its own fast link, and of the equal copies that the sending tp group holds each rank sends its shard. Ring attention
/// may permute the sequence over cp (zig-zag): positions here count in the order the stages hold them.
/// `tokens` is the sequence length at the cut, `bytes_per_sample` the activation of one sample there; sequence shards
/// of a length that does not divide differ by at most one position. Ordered by (src, dst, sample, seq).
[[nodiscard]] std::vector<Transfer> boundary_transfers(const Stage& from, const Stage& to, std::int64_t tokens,
                                                       Bytes bytes_per_sample);

/// Equal: shards coincide. Fan-in: each sender has one receiver; fan-out: each receiver has one sender. Overlap:
/// neither.
[[nodiscard]] BoundaryMode boundary_mode(const std::vector<Transfer>& transfers);

/// What each runtime would say to the plan's shape: megatron, flagscale and mimo constraints with stable codes
/// (generic is always ok).
[[nodiscard]] std::vector<TargetVerdict> target_verdicts(const LaunchPlan& plan);

/// What one of them says against the plan; empty: it runs it.
[[nodiscard]] std::vector<TargetReason> reasons_against(const LaunchPlan& plan, runtime::Target target);

/// The job as the target runs it: with the loss that it has (runtime::Runtime::in_place_loss), whatever the job says.
[[nodiscard]] model::Job as_run_by(runtime::Target target, model::Job job);

/// Of those constraints, what the model breaks in whatever plan.
[[nodiscard]] std::vector<TargetReason> model_refusals(runtime::Target target, const model::Model& model);
/// Execution options of the job that something with these lacks; codes PREFIX_...
[[nodiscard]] std::vector<TargetReason> option_refusals(const runtime::ExecutionOptions& has, const model::Model& model,
                                                        const std::string& prefix);

}  // namespace tangram::plan
