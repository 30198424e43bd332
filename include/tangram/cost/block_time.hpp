// Time of one block, of the embedding and of the head on one GPU, per microbatch. Goes in: a block, degrees, samples
// per replica, a shape. Comes out: compute and communication apart, so that overlap applies only where it holds.
//
// Communication of a block in each direction (bytes of the full tensor, e u h with e the activation's size):
//   tp   one all-reduce per sub-layer (Shoeybi et al., arXiv 1909.08053, section 3); with sequence parallelism an
//        all-gather and a reduce-scatter of the same volume (Korthikanti et al., arXiv 2205.05198, section 4.2.2),
//        but for what products read in 8 or 4 bits, which is gathered in these; one for both where attention and
//        feed-forward are parallel
//   cp   K and V go once around the ring, backward also their gradients (Liu et al., Ring Attention, arXiv 2310.01889).
//        Each of the c steps computes one c-th of the attention while the next block travels; only c-1 steps have one,
//        so that (c-1)/c of the attention hides it: exposed max(0, ring - (c-1)/c attention). By an all-gather the same
//        bytes arrive before attention begins (backward: and their gradients leave behind it); by an all-to-all
//        queries, keys and values of all heads leave for those of all positions, and what is attended to comes back
//        (Jacobs et al., DeepSpeed-Ulysses, arXiv 2309.14509). Neither is hidden.
//        A recurrence exchanges tokens for heads and back, and hides neither (recurrence.hpp)
//   ep   dispatch and combine, an all-to-all each (Lepikhin et al., GShard, arXiv 2006.16668, section 3.2), and the
//        same for the gradients, of rows as wide as experts read them; expert-tp all-gathers the received rows and
//        reduce-scatters the results
// Rank order, fastest first: tp, cp, dp for the dense part; expert-tp, ep, expert replicas for the experts (the
// tp-cp-ep-dp order of Megatron-Core's parallel_state).
//
// Exchanges take the time of a measured curve where one of their group is given, the model's elsewhere.
#pragma once

#include <span>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/collective_curves.hpp"
#include "tangram/cost/local_block.hpp"

namespace tangram::cost {

struct BlockTime {
  Passes compute;
  Passes communication;          ///< exposed: nothing of it is hidden any more
  Passes tensor;                 ///< of it, what tensor and expert-tensor parallelism exchange
  Passes bus;                    ///< of it, what the host's bus is waited for; gathers of ZeRO-3 hide under that, too
  Passes overlapped;             ///< compute that already hides the ring; nothing else can hide under it
  Passes alone;                  ///< what passes of another microbatch hide: more communication where none is beside
  double selective_compute = 0;  ///< what selective recompute runs again
  double unread = 0;             ///< forward, what full recompute leaves out (ExecutionMethods::early_stop)
  double states = 0;             ///< what full recompute takes longer than forward, as the host keeps random numbers
};

/// The block without its connector. Of backward what its gradients ask for: no product for weights that are not
/// trained, nothing at all where nothing upstream is trained.
[[nodiscard]] BlockTime block_time(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                                   double samples_per_replica, const cluster::DeviceShape& shape,
                                   std::span<const CollectiveCurve> curves = {});

/// The block's connector: sharded by tp, with one exchange of its output forward and one of its input backward. Zero
/// where it has none.
[[nodiscard]] BlockTime connector_time(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                                       double samples_per_replica, const cluster::DeviceShape& shape,
                                       std::span<const CollectiveCurve> curves = {});

/// Gathers rows of the vocabulary-parallel table and sums them over tp; backward adds rows into the main gradients.
[[nodiscard]] BlockTime embedding_time(const model::Model& model, const Degrees& degrees, double samples_per_replica,
                                       const cluster::DeviceShape& shape, std::span<const CollectiveCurve> curves = {});

/// Final norm, logits, vocabulary-parallel cross-entropy (Shoeybi et al., section 3: only scalars per token travel).
[[nodiscard]] BlockTime head_time(const model::Model& model, const Degrees& degrees, double samples_per_replica,
                                  const cluster::DeviceShape& shape, std::span<const CollectiveCurve> curves = {});

/// The model with everything trained, as embedding_time and head_time see it.
[[nodiscard]] model::Model unfrozen(model::Model model);

/// Of what a unit takes that is trained in full, without adapters, what `time` takes, pass by pass: exchanges count.
/// What was measured is of such units (unit_costs.cpp), and so is what calibration writes.
[[nodiscard]] Passes share_of_trained(const BlockTime& time, const BlockTime& trained);

}  // namespace tangram::cost
