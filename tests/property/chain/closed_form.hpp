// The time of one pipeline from the inequalities of src/chain/README.md, in plain numbers. Shares no code with the
// composer: inequalities instead of the recursion, and a search for the period of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "tangram/chain/program.hpp"

namespace tangram::tests {

/// `hops[s]` lies between stage s and s + 1. nullopt: memory holds the pipeline at no period, or it takes `below` or
/// more.
[[nodiscard]] std::optional<std::int64_t> closed_form(std::span<const prune::Candidate> stages,
                                                      std::span<const chain::Price> hops, std::int64_t microbatches,
                                                      std::int64_t below = std::numeric_limits<std::int64_t>::max());

/// Likewise where stages stop for their transfers: `stages` hold what classic warm-ups ask for.
[[nodiscard]] std::optional<std::int64_t> blocking_form(std::span<const prune::Candidate> stages,
                                                        std::span<const chain::Price> hops, std::int64_t microbatches,
                                                        std::int64_t below = std::numeric_limits<std::int64_t>::max());

/// Likewise of several model chunks a stage, in passes of one chunk; the last of `hops` lies between the last stage and
/// the first.
[[nodiscard]] std::optional<std::int64_t> interleaved_form(
    std::span<const prune::Candidate> stages, std::span<const chain::Price> hops,
    const chain::Interleaving& interleaving, std::int64_t passes,
    std::int64_t below = std::numeric_limits<std::int64_t>::max());

}  // namespace tangram::tests
