// What selective recompute adds to the backward pass of one block.
#pragma once

#include "block_parts.hpp"

namespace tangram::cost {

/// Forward, of a dense feed-forward what no backward pass reads: its last product, and its exchange where that is
/// waited for. What experts give is read, for the gradients of their weights in the sum.
[[nodiscard]] double unread_seconds(const BlockContext& c, const model::Job& job);

/// Seconds of what is run again. `routed`, `exchange`: of a layer of experts; nothing of others.
[[nodiscard]] double selective_seconds(const BlockContext& c, const MixerTime& mixer, const Passes& routed,
                                       const ExpertExchange& exchange, const model::Job& job);

}  // namespace tangram::cost
