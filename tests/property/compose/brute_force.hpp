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

[[nodiscard]] BruteForceAnswer brute_force(const compose::Program& program);

/// Closed form of one chain; nullopt when memory holds it at no period.
[[nodiscard]] std::optional<std::int64_t> closed_form(const compose::Program& program,
                                                      const std::vector<compose::ChainStage>& stages);

}  // namespace tangram::tests
