// What selective recompute adds to the backward pass of one block.
#pragma once

#include "block_parts.hpp"

namespace tangram::cost {

/// Forward, what comes last in a block and no backward pass reads: its last product, and its exchange where that is
/// waited for; of experts the second product and the way back, half of `routes` exposed seconds of exchanges, since
/// tokens are weighed before it (torchtitan's score_before_experts, weighted activations of others).
[[nodiscard]] double unread_seconds(const BlockContext& c, double routes, const model::Job& job);

/// Seconds of what is run again. `routed`, `exchange`: of a layer of experts; nothing of others.
[[nodiscard]] double selective_seconds(const BlockContext& c, const MixerTime& mixer, const Passes& routed,
                                       const ExpertExchange& exchange, const model::Job& job);

}  // namespace tangram::cost
