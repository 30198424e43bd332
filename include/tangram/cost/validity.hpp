// Which degrees a model can run at: the one place that says what divides what. Goes in: a model, degrees, samples.
// Comes out: nothing, or the reason why not. The search, the checker and the targets ask why_unsupported, in the terms
// of Megatron-LM's own argument checks (megatron/training/arguments.py), which every target inherits; `verify`, which
// runs more than any runtime takes, asks why_indivisible, so that it refuses nothing that the others let pass.
//
// Indivisible by any runtime:
//   tp   divides the heads; kv heads divide by tp, or tp by kv heads (then they are replicated)
//        tp x cp divides the heads and the groups of a recurrence, which cp shards like tp between two exchanges
//   s    has a position for each of tp x cp ranks, which hand a sample over in as many pieces
//   ep   divides the experts; ep * expert-tp divides the GPUs
//   dp   no more than the samples of a microbatch, of which replicas get equally many or one more than others
// Beside that:
//   tp   divides the feed-forward widths, expert-tp the width of an expert; the vocabulary is padded, so it never
//   stands
//        in the way
//   sp   needs tp > 1 and tp | s / cp (Megatron-LM pads nothing); experts with tp > 1 need it
//   cp   2 cp | s (each rank takes an early and a late chunk, which balances the causal mask); needs fused attention
#pragma once

#include <string>

#include "tangram/cost/strategy.hpp"

namespace tangram::cost {

/// Empty: ranks can share the work, whatever a runtime asks beside.
[[nodiscard]] std::string why_indivisible(const model::Model& model, const Degrees& degrees, int samples);

/// Empty: supported, and then not indivisible either. O(block types); allocates only when there is something to say.
[[nodiscard]] std::string why_unsupported(const model::Model& model, const Degrees& degrees, int samples);

}  // namespace tangram::cost
