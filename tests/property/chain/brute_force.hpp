// The minimum over all chains of a program by plain enumeration. Shares no code with the composer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::tests {

struct BruteForceAnswer {
  std::optional<std::int64_t> time;
  std::int64_t chains = 0;
};

/// Whether a chain of these options, first stage first, counts.
using ChainFilter = std::function<bool(const std::vector<int>& options)>;

/// Frontiers need not be pruned or sorted. Of no interest: chains that take `below` or more, or that the filter (if
/// there is one) refuses.
[[nodiscard]] BruteForceAnswer brute_force(const chain::Program& program, std::int64_t below = INT64_MAX,
                                           const ChainFilter& is_allowed = {});

/// The least timetable of the chains whose closed form is less than `below`, with as many microbatches in flight as
/// that asks for.
[[nodiscard]] std::optional<std::int64_t> fastest_timetable(const chain::Program& program, std::int64_t below);

/// Closed form of one chain; nullopt when memory holds it at no period.
[[nodiscard]] std::optional<std::int64_t> closed_form(const chain::Program& program,
                                                      const std::vector<chain::ChainStage>& stages);

}  // namespace tangram::tests
