// What selective recompute adds to the backward pass of one block.
#pragma once

#include "block_parts.hpp"

namespace tangram::cost {

/// Forward, of a dense feed-forward what no backward pass reads.
struct Unread {
  double product = 0;
  double exchange = 0;

  [[nodiscard]] double total() const { return product + exchange; }
};

/// Its last product, and its exchange where that is waited for. What experts give is read, for the gradients of their
/// weights in the sum.
[[nodiscard]] Unread unread_part(const BlockContext& c, const model::Job& job);

/// Seconds of what is run again. `routed`, `exchange`: of a layer of experts; nothing of others.
[[nodiscard]] double selective_seconds(const BlockContext& c, const MixerTime& mixer, const Passes& routed,
                                       const ExpertExchange& exchange, const model::Job& job);

}  // namespace tangram::cost
