// What one stage costs. Goes in: a slice, a shape, degrees, a memory policy, samples per microbatch. Comes out:
// times without gradient synchronisation, the synchronisation, the optimizer step, and every term of memory
// (design.md section 6). Two steps, because stages of equal degrees share the first one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cost/strategy.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::cost {

enum class Provenance : std::uint8_t { kMeasured, kInterpolated, kModelled };
[[nodiscard]] std::string_view to_string(Provenance provenance);

/// One block (or the embedding, or the head) at given degrees and samples; per microbatch and GPU.
struct UnitCost {
  double forward = 0;              ///< seconds, with its tp, cp, ep communication
  double backward = 0;             ///< seconds, without recompute
  double recompute_selective = 0;  ///< seconds added to backward
  double recompute_full = 0;
  double zero3_gather = 0;         ///< seconds of gathering parameters once (exposed part), per forward or backward
  double zero2_scatter = 0;        ///< seconds of reducing gradients each microbatch (exposed part), ZeRO-2 and 3
  double shared_parameters = 0;    ///< on this GPU before ZeRO, sharded over dp x cp by ZeRO
  double expert_parameters = 0;    ///< on this GPU before ZeRO, sharded over edp by ZeRO
  double activation_none = 0;      ///< bytes kept per in-flight microbatch
  double activation_selective = 0;
  double activation_full = 0;
  double working = 0;              ///< bytes of the largest short-lived buffer while it runs
};

/// Everything the stages of equal (model, shape, degrees, samples) share.
struct UnitCosts {
  Degrees degrees;
  int samples = 0;
  std::vector<UnitCost> blocks;    ///< by block type
  UnitCost embedding;
  UnitCost head;                   ///< logits, loss and their gradient included
  cluster::DeviceShape shape;
  std::int64_t parameter_bytes = 2;
  std::int64_t gradient_bytes = 4;
  std::int64_t optimizer_bytes = 12;
  Provenance provenance = Provenance::kModelled;
};

/// Why these degrees cannot run this model: "heads % tp" and the like. One Diagnostic of kind kInfeasible, code
/// "unsupported-degrees". Requires degrees.gpus() == shape.gpus(), samples % dp == 0, samples >= 1.
[[nodiscard]] Expected<UnitCosts> unit_costs(const model::Model& model, const cluster::DeviceShape& shape,
                                             const Degrees& degrees, int samples);

struct StageCost {
  Nanoseconds forward;         ///< f: one microbatch
  Nanoseconds backward;        ///< w: one microbatch, recompute included
  Nanoseconds gradient_sync;   ///< inside the stage, whole, before any hiding
  Nanoseconds optimizer_step;  ///< parameter all-gather of ZeRO-1/2 included
  Bytes parameters;            ///< of static_memory
  Bytes gradients;
  Bytes optimizer_state;
  Bytes transient;
  Bytes activation;            ///< per in-flight microbatch
  Bytes gradient_volume;       ///< gradients of the whole slice, unsharded: what replicas exchange
  Provenance provenance = Provenance::kModelled;

  [[nodiscard]] Bytes static_memory() const { return parameters + gradients + optimizer_state; }
  /// Peak with n microbatches in flight (design.md 5.2).
  [[nodiscard]] Bytes peak(std::int64_t in_flight) const { return static_memory() + transient + activation * in_flight; }
  bool operator==(const StageCost&) const = default;
};

/// Adds up the units of a slice. zero > 0 is meaningful only when there is something to shard over.
[[nodiscard]] StageCost stage_cost(const UnitCosts& units, const model::SliceSignature& slice,
                                   const MemoryPolicy& policy);

/// The most microbatches that fit; 0: not even one. Capped at 1'000'000 where activations cost nothing.
[[nodiscard]] std::int64_t max_in_flight(const StageCost& cost, Bytes usable);

/// Share of a stage's own last backward under which its gradient synchronisation can hide. Buckets are reduced as
/// backward produces them (Li et al., PyTorch Distributed, VLDB 2020); the last bucket never hides.
inline constexpr double kSyncOverlap = 0.80;

/// Gradient synchronisation that stays exposed: max(0, sync - kSyncOverlap * backward).
[[nodiscard]] Nanoseconds exposed_sync(Nanoseconds sync, Nanoseconds backward);

/// All-reduce of `volume` bytes across `replicas` stages that reach each other with `link` per member.
[[nodiscard]] Nanoseconds replica_sync(Bytes volume, int replicas, const cluster::Link& link, int members);

/// One-way latency and link occupancy of handing `bytes` from one shape to another.
struct BoundaryCost {
  Nanoseconds latency;    ///< c of design.md 5.1, occupancy included
  Nanoseconds occupancy;  ///< how long the link is busy
  auto operator<=>(const BoundaryCost&) const = default;
};
/// Each GPU of the source sends its share of the tensor, each of the destination receives its share: the narrower
/// aggregate decides; a fan-in or fan-out sends ceil(larger/smaller) messages per GPU of the smaller side.
[[nodiscard]] BoundaryCost boundary_cost(Bytes bytes, const cluster::Link& link, int source_members, int source_gpus,
                                         int target_members, int target_gpus);

/// A lower bound on the GPU-seconds that one sample of the block type (forward and backward) costs on this device
/// under any technique: FLOPs over the sustained peak. Used by relaxed_bound.
[[nodiscard]] double least_gpu_seconds(const model::Model& model, const model::BlockType& block,
                                       const cluster::GpuType& device);
[[nodiscard]] double least_gpu_seconds_head(const model::Model& model, const cluster::GpuType& device);

}  // namespace tangram::cost
