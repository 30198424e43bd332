// What zero bubble puts off of a stage's backward pass (Qi et al., arXiv 2401.10241, section 2). Goes in: a slice and
// the costs of its units. Comes out: the time of the weight gradients, and what is kept until they are worked out.
//
// Put off are the products for weights of the linear layers of blocks. Embedding, head and connectors have theirs at
// once: a head's gradient is as large as the vocabulary, and nobody waits for an embedding's. Until then a layer keeps
// what it read, once for layers that read the same, and the gradient of what it gave. Inside of tensor-parallel regions
// both are of all tokens of the context range, as apps/torch keeps them (weight_gradients.py). Values of a token:
//   projections   h + a q + k (q + v)  and  a v + h        latent: down and up projections, each in and out
//   feed-forward  h + 2 f (gated) or f,  and  f + h         experts: the same of their rows, and the router
// For MHA, f = 4 h, 16 bits: 32 s b h, as table 1 of the paper has it, beside s b h (34 + 5 a s / h) of activations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tangram/cost/stage.hpp"

namespace tangram::cost {

/// Of one microbatch.
struct PutOffCost {
  Nanoseconds weight_gradient;  ///< of the stage's backward pass, rounded down
  Bytes held;                   ///< from the backward pass until then
  bool operator==(const PutOffCost&) const = default;
};

/// Of one block of each type, of one microbatch.
struct PutOffUnits {
  std::vector<double> seconds;
  std::vector<double> bytes;
};
[[nodiscard]] PutOffUnits put_off_units(const model::Model& model, const UnitCosts& units);

/// Sums over the blocks of a slice, whatever their ZeRO stage and recompute: what is run again is kept from there on.
/// Of measured backward passes, the share that the modelled ones have. `units`: of the model, with its degrees.
[[nodiscard]] PutOffCost put_off_cost(const model::Model& model, const UnitCosts& units,
                                      const model::SliceSignature& slice);
[[nodiscard]] PutOffCost put_off_cost(const PutOffUnits& units, const model::SliceSignature& slice);

/// Bytes that one block keeps.
[[nodiscard]] double put_off_bytes(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                                   double samples_per_replica);

/// Peak of activations with n microbatches in flight as under 1F1B, and weight gradients of `put_off` more. A
/// microbatch holds `activation` until its backward pass and `held` behind it; of n + put_off, n at most are before it.
/// What is held is linear in how many those are, so that the peak is where all n are, or none.
[[nodiscard]] constexpr Bytes put_off_peak(Bytes activation, Bytes held, std::int64_t in_flight, std::int64_t put_off) {
  return std::max(activation, held) * in_flight + held * put_off;
}

/// The most microbatches in flight whose weight gradients may be put off. `room`: beside static memory and transient
/// buffers.
[[nodiscard]] inline std::int64_t most_with_put_off(Bytes room, Bytes activation, Bytes held) {
  return max_in_flight(room, std::max(activation, held));
}

}  // namespace tangram::cost
