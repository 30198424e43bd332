// Random kernels, buffers and GPUs.
#pragma once

#include <random>

#include "tangram/disaggregate/problem.hpp"

namespace tangram::tests {

struct ProblemFlavour {
  int most_kernels = 10;
  int least_classes = 1;
  int most_classes = 3;
  bool tight_memory = true;
  bool few_in_flight = true;  ///< so that the latency of passes counts
};

[[nodiscard]] disaggregate::Problem random_problem(std::mt19937_64& random, const ProblemFlavour& flavour);

}  // namespace tangram::tests
