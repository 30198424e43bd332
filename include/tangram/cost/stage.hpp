// What one stage costs. Goes in: a slice, a shape, degrees, a memory policy, samples per microbatch. Comes out:
// times without gradient synchronisation, the synchronisation, the optimizer step, and every term of memory
// (parameters, gradients, optimizer state, activations, buffers). Two steps, because stages of equal degrees share the
// first one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cost/communication.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/cost/strategy.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::cost {

/// One block (or the embedding, or the head) at given degrees and samples; per microbatch and GPU.
struct UnitCost {
  double forward = 0;              ///< seconds, with its tp, cp, ep communication
  double backward = 0;             ///< seconds, without recompute
  double recompute_selective = 0;  ///< seconds added to backward
  double recompute_full = 0;
  double zero3_gather = 0;     ///< ZeRO-3: exposed seconds of gathering parameters, added to forward
  double zero3_backward = 0;   ///< ZeRO-3: exposed seconds of gathering again and reducing gradients, to backward
  double zero3_recompute = 0;  ///< ZeRO-3: exposed seconds of gathering for full recompute alone, added to it
  double zero2_scatter = 0;    ///< ZeRO-2: exposed seconds of reducing gradients each microbatch, to backward
  double zero3_busy = 0;       ///< ZeRO-3: seconds of backward in which its exchanges have the links
  double zero2_busy = 0;       ///< ZeRO-2: the same
  double alone = 0;            ///< once an iteration: what experts exchange in the first forward and the last backward
                               ///< pass, which have no passes of another microbatch beside them
  double shared_parameters = 0;   ///< held on this GPU before ZeRO, sharded over dp_shard x cp by ZeRO; quantized ones
                                  ///< count for the share of a parameter's bytes that they take
  double expert_parameters = 0;   ///< on this GPU before ZeRO, sharded over edp / expert_replicate by ZeRO
  double trained_shared = 0;      ///< of shared_parameters, those with gradients and optimizer state
  double trained_expert = 0;      ///< of expert_parameters, the same
  double trained_parameters = 0;  ///< of the whole unit, unsharded
  double gathered_bytes = 0;      ///< a parameter that ZeRO gathers
  double copies = 0;              ///< bytes of weights as products in 8 or 4 bits read them, beside those of 2 bytes
  double gathered_copies = 0;     ///< the same from ZeRO-1 on, which may gather them as these: then none
  double kept_shared = 0;         ///< bytes of shared_parameters from ZeRO-1 on, before it shards them: 2 each, or as
                                  ///< products read them
  double kept_expert = 0;         ///< of expert_parameters
  double cast = 0;                ///< bytes moved once an iteration to make them
  double tensor_share = 1;        ///< of its parameters those of which a GPU has gradients and copies at a time, where
                                  ///< ZeRO shards both: a compiler has one tensor's (ExecutionMethods::scheduled)
  double activation_none = 0;     ///< bytes kept per in-flight microbatch
  double activation_selective = 0;
  double activation_full = 0;
  double working = 0;  ///< bytes of the largest short-lived buffer while it runs
};

/// Everything the stages of equal (model, shape, degrees, samples) share.
struct UnitCosts {
  Degrees degrees;
  int samples = 0;
  std::vector<UnitCost> blocks;  ///< by block type; nothing where it is unsupported
  UnitCost embedding;
  UnitCost head;               ///< logits, loss and their gradient included; without the matrix where it is tied
  double tied_parameters = 0;  ///< per GPU: the copy of a tied matrix that a head without embedding holds
  double tied_matrix = 0;      ///< the same, unsharded
  bool tied_trained = true;    ///< whether it is trained
  cluster::DeviceShape shape;
  ProcessGroups groups;
  std::vector<CollectiveCurve> curves;  ///< measured in these groups
  std::int64_t parameter_bytes = 2;
  std::int64_t gradient_bytes = 4;
  double optimizer_bytes = 12;               ///< of the optimizer's state, what stays on the GPU
  double host_stepped = 0;                   ///< share of the parameters that the host steps
  std::int64_t update_bytes = 0;             ///< of a shard, from ZeRO-1 on, while the optimizer steps
  double memory_rate = 0;                    ///< bytes/s of streaming kernels (DeviceRates::memory)
  double gradient_bucket = 0;                ///< parameters that exchanges beside passes have at a time
  bool gathers_beside = false;               ///< parameters of ZeRO-1 and 2 are gathered beside the first forward pass
  std::vector<Provenance> block_provenance;  ///< of forward and backward, by block type; empty: modelled
  Provenance embedding_provenance = Provenance::kModelled;
  Provenance head_provenance = Provenance::kModelled;
  Unsupported unsupported;  ///< slices that these degrees cannot run have no cost
};

/// Parameters a second that a host's CPU steps by Adam for one of its GPUs, copies there and back included, while it
/// does so for all of them: Qwen3-30B-A3B on 16 H100 takes 0.996 s an iteration, and 1.871, 2.484, 3.187 and 4.189 s
/// with 25, 50, 75 and 100 % of the moments on the hosts, for 1.908 G parameters a GPU (Megatron-Bridge,
/// skills/nemo-mbridge-perf-cpu-offloading/card.yaml, tp 2, pp 2, ep 4): 3.1 s for all. The GPUs of other hosts are
/// taken to have as much of a CPU each.
inline constexpr double kHostStepped = 1.908e9 / 3.1;

/// Where a stage's times come from: the weakest provenance among its units, of which those that take less than this
/// share of its forward and backward are not asked (an embedding beside measured blocks).
inline constexpr double kNegligibleShare = 0.01;
[[nodiscard]] Provenance slice_provenance(const UnitCosts& units, const model::SliceSignature& slice);

/// Of all that these degrees can run. One Diagnostic of kind kInfeasible, code "unsupported-degrees", where they can
/// run no layer of the model: "heads % tp" and the like (validity.hpp). Requires degrees.gpus() == shape.gpus(). Where
/// `profiles` know a unit, their times take the place of the modelled ones; full recompute is then their forward,
/// selective recompute and activations without one of their own keep the share the model gives them. Where they have
/// curves of the stage's groups, collectives take those times.
[[nodiscard]] Expected<UnitCosts> unit_costs(const model::Model& model, const cluster::DeviceShape& shape,
                                             const Degrees& degrees, int samples, const ProfileSet* profiles = nullptr);
/// The same, and an error where the slice is among what they cannot run.
[[nodiscard]] Expected<UnitCosts> unit_costs_of(const model::Model& model, const model::SliceSignature& slice,
                                                const cluster::DeviceShape& shape, const Degrees& degrees, int samples,
                                                const ProfileSet* profiles = nullptr);

/// Adds what unit_costs would use for a slice at these degrees and samples; of the shape, device and size count.
void collect_used(const ProfileSet& profiles, const model::Model& model, const model::SliceSignature& slice,
                  const cluster::DeviceShape& shape, const Degrees& degrees, int samples, Selection& used);

struct StageCost {
  Nanoseconds forward;         ///< f: one microbatch
  Nanoseconds backward;        ///< w: one microbatch, recompute included
  Nanoseconds gradient_sync;   ///< inside the stage, whole, before any hiding
  Nanoseconds optimizer_step;  ///< parameter all-gather of ZeRO-1/2 included, and UnitCost::alone
  Bytes parameters;            ///< of static_memory
  Bytes gradients;
  Bytes optimizer_state;
  Bytes transient;
  Bytes activation;       ///< per in-flight microbatch
  Bytes gradient_volume;  ///< gradients of the whole slice, unsharded: what replicas exchange
  Provenance provenance = Provenance::kModelled;

  [[nodiscard]] Bytes static_memory() const { return parameters + gradients + optimizer_state; }
  /// Peak with n microbatches in flight.
  [[nodiscard]] Bytes peak(std::int64_t in_flight) const {
    return static_memory() + transient + activation * in_flight;
  }
  bool operator==(const StageCost&) const = default;
};

/// Adds up the units of a slice: O(runs), no allocation, rounded up once at the end.
///   forward   sum of units, with ZeRO-3 plus the exposed gathers
///   backward  sum of units, plus recompute, plus exposed gathers and scatters of ZeRO-2 and 3
///   sync      of trained parameters alone. ZeRO-0: all-reduce of the gradients, ZeRO-1: reduce-scatter; shared over
///             dp x cp, experts over their replicas. ZeRO-2 and 3 reduce each microbatch inside its backward, so that
///             nothing is left at the end. Where ZeRO shards inside groups, these collectives of ZeRO-1 to 3 stay
///             inside them, and the shards of gradients are all-reduced among the groups at the end. A first stage's
///             bucket by bucket (UnitCosts::gradient_bucket). Where the slice is the whole model without the
///             embedding's gradient, which is known when backward has ended
///   step      streaming of gradients (norm, update), optimizer state and parameters. ZeRO-1 and 2 then all-gather what
///             they updated, where the job has it so beside the next forward pass, which hides it as backward hides the
///             sync (exposed_sync), but for the embedding's, which that pass begins with. Once an iteration, too, and
///             beside nothing: the embedding's gradient where sync is without it, and where experts exchange beside
///             passes of another microbatch what they do in the first forward and the last backward pass
///             (Megatron-Core, combined_1f1b.py)
///   transient the largest of: a unit's working set, with what recompute brings back, with ZeRO-2's unsharded gradients
///             of the unit, with ZeRO-3's gathered parameters of the unit and of the prefetched next;
///             plus send and receive buffers of both cuts. The fp32 copy of narrower gradients that a sharded
///             optimizer makes of its share (wide_gradient_bytes) is there while it steps, when no activations are: as
///             much of it as one microbatch's activations leave
/// Where units differ in their ZeRO stage:
///   transient gathers run ahead while any unit is at work: the largest working set, and beside it the largest of
///             ZeRO's buffers
///   sync      of the units with ZeRO-0 and 1; while the others gather and scatter, beside their backward pass or
///             exposed, the links are taken and hide nothing: kSyncHidden of that time is added, which is what hiding
///             would take off. Not for an all-reduce among groups alone that are each inside a member: it has links
///             of its own
/// zero > 0 is meaningful only when there is something to shard over. The gradient all-reduce between the two ends of a
/// tied embedding is not in here: it crosses stages.
[[nodiscard]] StageCost stage_cost(const UnitCosts& units, const model::SliceSignature& slice,
                                   const MemoryPolicy& policy);

/// A stage of several model chunks.
struct ChunkedCost {
  /// Times, state and what its microbatches hold in all chunks together; of transient memory the largest of a chunk, as
  /// one of them runs at a time.
  StageCost all;
  std::vector<StageCost> chunks;
};
/// What is recomputed in full are the first layers of each chunk, all of a shorter one. The policy is the same for all
/// blocks (is_mixed() is false).
[[nodiscard]] ChunkedCost chunked_cost(const UnitCosts& units, const std::vector<model::SliceSignature>& chunks,
                                       const MemoryPolicy& policy);

/// Forward and backward of a slice without ZeRO and recompute, as stage_cost has them: both only add to it.
[[nodiscard]] Nanoseconds least_time(const UnitCosts& units, const model::SliceSignature& slice);

/// What one unit adds to a stage of its degrees, unrounded: the first four are added up, of the last two the largest
/// counts. For callers that choose a policy block by block.
struct UnitTerms {
  double forward = 0;     ///< seconds
  double backward = 0;    ///< seconds, recompute and what ZeRO exposes included
  double held = 0;        ///< bytes of parameters, gradients and optimizer state
  double activation = 0;  ///< bytes per in-flight microbatch
  double working = 0;     ///< bytes, with what recompute brings back
  double buffers = 0;     ///< bytes of ZeRO: unsharded gradients, gathered parameters
};
/// The copy of a tied matrix that a head without embedding holds, as a unit without times.
[[nodiscard]] UnitCost tied_unit(const UnitCosts& units);
[[nodiscard]] UnitTerms unit_terms(const UnitCosts& units, const UnitCost& unit, const BlockPolicy& policy);

/// Bytes of send and receive buffers of the stage's two cuts, each for an activation and a gradient of one microbatch.
[[nodiscard]] double boundary_buffers(const UnitCosts& units, const model::SliceSignature& slice);

/// What of a StageCost recompute changes.
struct RecomputeCost {
  Nanoseconds backward;
  Bytes transient;
  Bytes activation;
};

/// stage_cost of one slice at fixed degrees and one ZeRO stage, for callers that try many ways to recompute: what
/// recompute does not change is added up once, and the same to the nanosecond and the byte in all of them. Both
/// arguments must outlive it.
class StageCoster {
 public:
  StageCoster(const UnitCosts& units, const model::SliceSignature& slice, int zero);

  /// Forward, sync, step and memory that recompute does not change; the rest is left zero.
  [[nodiscard]] const StageCost& fixed() const { return fixed_; }
  [[nodiscard]] RecomputeCost recompute(RecomputeMode mode, int layers) const;
  [[nodiscard]] StageCost cost(RecomputeMode mode, int layers) const;
  /// Beside static memory while the optimizer steps; of what cost() gives a part of transient memory.
  [[nodiscard]] Bytes update() const { return update_; }
  /// Seconds of the step in which the embedding's gradient is exchanged.
  [[nodiscard]] double last_sync() const;

 private:
  friend class FullRecompute;

  const UnitCosts* units_;
  const model::SliceSignature* slice_;
  int zero_;
  double boundary_;  ///< bytes of send and receive buffers
  Bytes update_;     ///< beside static memory while the optimizer steps
  StageCost fixed_;
};

/// StageCoster::recompute in full, for callers that try many numbers of blocks.
class FullRecompute {
 public:
  explicit FullRecompute(const StageCoster& coster) { become(coster); }
  /// Of no stage.
  FullRecompute() = default;

  /// Takes the place of a new one, without new memory.
  void become(const StageCoster& coster);
  /// Of the stage's first `layers` blocks.
  [[nodiscard]] RecomputeCost at(int layers) const;

 private:
  /// Seconds and bytes.
  struct Sum {
    double backward = 0;
    double activation = 0;
    double transient = 0;
  };
  struct Run {
    int before = 0;  ///< blocks
    int count = 0;
    double backward = 0;   ///< of all its blocks, without recompute
    double recompute = 0;  ///< of one, as all that follows
    double kept = 0;
    double kept_recomputed = 0;
    double held = 0;  ///< of all its blocks, without recompute
    double transient = 0;
    double transient_recomputed = 0;
    Sum sum_before;  ///< of the embedding and the runs before, all recomputed
    Sum behind;      ///< of the runs behind it and the head, without recompute, from the last one on
  };

  static void add(const Run& run, int recomputed, Sum& sum);
  [[nodiscard]] bool adds_exactly() const;
  [[nodiscard]] std::optional<RecomputeCost> in_any_order(const Sum& sum, const Sum& behind) const;

  double boundary_ = 0;
  Bytes update_;
  Sum last_;  ///< the head, zero where the slice has none
  std::vector<Run> runs_;
  bool adds_exactly_ = false;  ///< activations are such numbers that sums of them are not rounded
};

/// The most microbatches that fit; 0: not even one. Capped at 1'000'000 where activations cost nothing.
[[nodiscard]] std::int64_t max_in_flight(const StageCost& cost, Bytes usable);
/// The same with `room` left next to static memory and transient buffers.
[[nodiscard]] std::int64_t max_in_flight(Bytes room, Bytes activation);

/// Share of a stage's own last backward under which its gradient synchronisation can hide. Buckets are reduced as
/// backward produces them (Li et al., PyTorch Distributed, VLDB 2020); the last bucket never hides.
inline constexpr double kSyncOverlap = 0.80;
/// Share of that backward which hiding takes off: kernels beside the synchronisation are slower.
inline constexpr double kSyncHidden = (1 - kOverlapLoss) * kSyncOverlap;

/// Gradient synchronisation that stays exposed: what outlasts kSyncOverlap of the backward pass, and of what runs
/// beside it kOverlapLoss.
[[nodiscard]] Nanoseconds exposed_sync(Nanoseconds sync, Nanoseconds backward);

/// Ring all-reduce of `volume` bytes across `replicas` stages that reach each other with `link` per member, all members
/// at once: 2(R-1) alpha + 2(R-1)/R volume / (members * link * kNetworkShare).
[[nodiscard]] Nanoseconds replica_sync(Bytes volume, int replicas, const cluster::Link& link, int members);

/// One-way latency and link occupancy of handing `bytes` from one shape to another.
struct BoundaryCost {
  Nanoseconds latency;    ///< c of src/chain/README.md, occupancy included
  Nanoseconds occupancy;  ///< how long the link is busy
  auto operator<=>(const BoundaryCost&) const = default;
};
/// Each GPU of the source sends its share of the tensor, each of the destination receives its share: the narrower
/// aggregate decides; a fan-in or fan-out sends ceil(larger/smaller) messages per GPU of the smaller side.
///   latency = ceil(larger/smaller) alpha + occupancy,   occupancy = bytes / (min(members) * link * kNetworkShare)
[[nodiscard]] BoundaryCost boundary_cost(Bytes bytes, const cluster::Link& link, int source_members, int source_gpus,
                                         int target_members, int target_gpus);

/// A lower bound on the GPU-seconds that one sample of the block type (forward and backward) costs on this device
/// under any technique: the matrix FLOPs of forward and of the products of backward that are needed (two for each where
/// everything is trained) over peak * gemm_efficiency, which no kernel of compute.hpp exceeds; less where a measured
/// row is faster still. Used by relaxed_bound.
[[nodiscard]] double least_gpu_seconds(const model::Model& model, const model::BlockType& block,
                                       const cluster::GpuType& device, const ProfileSet* profiles = nullptr);
[[nodiscard]] double least_gpu_seconds_head(const model::Model& model, const cluster::GpuType& device,
                                            const ProfileSet* profiles = nullptr);

}  // namespace tangram::cost
