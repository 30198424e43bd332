// Functions of one value that layers apply, and their slopes.
#pragma once

#include <cmath>

namespace tangram::execute {

inline constexpr double kEpsilon = 1e-6;  // keeps the norm of a row of zeros finite

[[nodiscard]] inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
[[nodiscard]] inline double silu(double x) { return x * sigmoid(x); }
[[nodiscard]] inline double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }
[[nodiscard]] inline double softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

}  // namespace tangram::execute
