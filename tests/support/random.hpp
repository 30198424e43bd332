// Random numbers of cases made by hand.
#pragma once

#include <random>

namespace tangram::testing {

/// Any of low, low + 1, ... high.
inline int pick(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

}  // namespace tangram::testing
