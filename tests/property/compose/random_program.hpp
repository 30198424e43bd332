// Small random composition problems that cover what makes the problem hard: slow links, extra microbatches in flight,
// binding gradient synchronisation, fewer microbatches than stages, tight memory, mixed stages.
#pragma once

#include <cstdint>
#include <random>

#include "tangram/compose/program.hpp"

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
};

[[nodiscard]] compose::Program random_program(std::mt19937_64& random, const Flavour& flavour);

}  // namespace tangram::tests
