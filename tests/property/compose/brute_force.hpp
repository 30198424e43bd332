// The minimum over all chains of a program by plain enumeration. Shares no code with the composer.
#pragma once

#include <cstdint>
#include <optional>

#include "tangram/compose/program.hpp"

namespace tangram::tests {

struct BruteForceAnswer {
  std::optional<std::int64_t> time;
  std::int64_t chains = 0;
};

/// Frontiers need not be pruned or sorted. Of no interest: chains that take `below` or more.
[[nodiscard]] BruteForceAnswer brute_force(const compose::Program& program, std::int64_t below = INT64_MAX);

/// Closed form of one chain; nullopt when memory holds it at no period.
[[nodiscard]] std::optional<std::int64_t> closed_form(const compose::Program& program,
                                                      const std::vector<compose::ChainStage>& stages);

}  // namespace tangram::tests
