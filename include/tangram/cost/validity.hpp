// Which degrees a model can run at. Goes in: a model, degrees, samples. Comes out: nothing, or the reason why not, in
// the terms of Megatron-LM's own argument checks (megatron/training/arguments.py), which every target inherits.
//
//   tp   divides the heads and the feed-forward widths; kv heads divide by tp, or tp by kv heads (then they are
//        replicated); the vocabulary is padded, so it never stands in the way
//   sp   needs tp > 1 and tp | s / cp; experts with tp > 1 need it
//   cp   2 cp | s (each rank takes an early and a late chunk, which balances the causal mask); needs fused attention
//   ep   divides the experts, expert-tp the width of an expert; ep * expert-tp divides the GPUs
//   dp   divides the samples of a microbatch
#pragma once

#include <string>

#include "tangram/cost/strategy.hpp"

namespace tangram::cost {

/// Empty: supported. O(block types); allocates only when there is something to say.
[[nodiscard]] std::string why_unsupported(const model::Model& model, const Degrees& degrees, int samples);

}  // namespace tangram::cost
