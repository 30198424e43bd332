// What parts of a graph of stages tell each other at one period. Goes in: the stages of one module, one by one. Comes
// out: labels of what lies behind a boundary, and of what feeds it, which joined are the closed form of the whole.
// Boundaries overlap with passes; a part that does not keep the period, or that memory does not hold, has no label.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

/// Stages from some stage to the last ones behind it. By default of none.
struct Label {
  std::int64_t Lat = 0;  ///< one microbatch's way there and back, ns
  std::int64_t A = 0;    ///< when the last gradients are synchronised, ns
  std::int64_t o = 0;    ///< longest optimizer step, ns
  std::int64_t n = 0;    ///< microbatches in flight on the first of the stages
  std::int64_t Q = 0;    ///< with n what the stage in front must hold (src/chain/README.md), ns
};

/// When the last gradients are there where there are none.
inline constexpr std::int64_t kNoGradient = -kUnlimited;

/// Stages of an encoder, from the first ones on. By default of none.
struct BranchLabel {
  std::int64_t phi = 0;             ///< until it hands over its first output, ns
  std::int64_t K = kNoGradient;     ///< its last gradients, counted from the return of what it feeds, ns
  std::int64_t o = 0;               ///< longest optimizer step, ns
  std::int64_t room = kUnlimited;   ///< of what it feeds: n is no more
  std::int64_t reach = kUnlimited;  ///< of what it feeds: Q is no more, ns
};

/// Seen from the stage in front of a boundary, or behind it.
[[nodiscard]] Label across(const Label& label, const Price& price);
[[nodiscard]] BranchLabel across(const BranchLabel& label, const Price& price);

/// Generators that read the same stage, encoders that feed the same stage: seen across their boundaries.
[[nodiscard]] Label fork(const Label& a, const Label& b);
[[nodiscard]] BranchLabel join(const BranchLabel& a, const BranchLabel& b);

/// A stage that has a backward pass, in front of what is `behind` it, seen across the boundary.
[[nodiscard]] std::optional<Label> prepend(const Stage& stage, const Label& behind, std::int64_t period,
                                           const InFlight& allowed);

/// The stage behind what feeds it, seen across the boundaries.
[[nodiscard]] std::optional<BranchLabel> append(const BranchLabel& inputs, const Stage& stage, std::int64_t period,
                                                const InFlight& allowed);

/// Stages in a row, `hops[s]` behind the s-th; `allowed` as many as stages. A chain may have something `behind`
/// its last hop; a branch may end in one hop more, to what it feeds.
[[nodiscard]] std::optional<Label> chain_label(std::span<const Stage> stages, std::span<const Price> hops,
                                               const Label& behind, std::int64_t period,
                                               std::span<const InFlight> allowed, std::int64_t microbatches);
[[nodiscard]] std::optional<BranchLabel> branch_label(std::span<const Stage> stages, std::span<const Price> hops,
                                                      std::int64_t period, std::span<const InFlight> allowed,
                                                      std::int64_t microbatches);

/// Whether the language model's microbatches in flight let the branches hold theirs.
[[nodiscard]] bool fits(const BranchLabel& branches, const Label& language);

/// Iteration time of all branches, joined and seen across their boundaries, with the language model, ns.
[[nodiscard]] std::int64_t joined_time(const BranchLabel& branches, const Label& language, std::int64_t microbatches,
                                       std::int64_t period);

}  // namespace tangram::multimodal
