// Small random composition problems that cover what makes the problem hard: slow links, extra microbatches in flight,
// binding gradient synchronisation, fewer microbatches than stages, tight memory, mixed stages.
#pragma once

#include <cstdint>
#include <random>

#include "tangram/chain/program.hpp"

namespace tangram::tests {

struct Flavour {
  int most_blocks = 6;
  int most_classes = 3;
  int most_units = 3;
  int most_microbatches = 9;
  bool slow_links = true;
  bool heavy_sync = true;
  bool tight_memory = true;
  bool mixed = true;
  bool spend_limit = false;
  bool far_apart = false;  ///< some classes only meet over links many times slower
  bool placement = false;  ///< limits on what may be placed together, and stages that can not be neighbours
  int twins = 0;           ///< further options with the same units as each, and other prices
};

[[nodiscard]] chain::Program random_program(std::mt19937_64& random, const Flavour& flavour);

/// Two blocks and boundary prices between so many keys, some of them above the period; no options.
[[nodiscard]] chain::Program random_hops(std::mt19937_64& random, int keys, std::int64_t period);

/// A partial plan whose T is at most the period.
[[nodiscard]] prune::Candidate random_plan(std::mt19937_64& random, std::int64_t period);

}  // namespace tangram::tests
