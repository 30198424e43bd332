// Whole-number arithmetic that stops at the largest value instead of overflowing: a file may hold any numbers.
#pragma once

#include <cstdint>
#include <limits>

namespace tangram::plan {

inline constexpr std::int64_t kSaturated = std::numeric_limits<std::int64_t>::max();

/// For a, b >= 0.
[[nodiscard]] constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
  return a > kSaturated - b ? kSaturated : a + b;
}

/// For a, b >= 0.
[[nodiscard]] constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
  return b != 0 && a > kSaturated / b ? kSaturated : a * b;
}

}  // namespace tangram::plan
