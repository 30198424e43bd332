#include "min_plus.hpp"

#include <algorithm>
#include <array>
#include <limits>

// Twice for x86-64, with AVX2 where the processor has it: sums and minima are the same to the last bit. Sanitizers do
// not stand choices that are made as early as while the program is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TANGRAM_WIDE_ROWS __attribute__((target_clones("avx2", "default")))
#else
#define TANGRAM_WIDE_ROWS
#endif

namespace tangram::chain {

TANGRAM_WIDE_ROWS void min_plus_update(double* row, const double* a, const double* b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b[i]);
}

TANGRAM_WIDE_ROWS void min_plus_update(double* row, const double* a, double b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b);
}

// Several minima side by side: none waits for the one before it.
TANGRAM_WIDE_ROWS double min_plus_product(const double* a, const double* b, std::size_t size) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> least;
  least.fill(std::numeric_limits<double>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      least[lane] = std::min(least[lane], a[i + lane] + b[i + lane]);
    }
  }
  for (std::size_t lane = 0; i < size; ++i, ++lane) least[lane] = std::min(least[lane], a[i] + b[i]);
  return *std::min_element(least.begin(), least.end());
}

}  // namespace tangram::chain
