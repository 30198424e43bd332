#include "rows.hpp"

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

namespace tangram::compose {

namespace {

// So many numbers of the row are held while all sums pass by.
template <std::size_t kWidth>
[[gnu::always_inline]] inline void lower_part(double* row, const RowTable& table, std::span<const int> named,
                                              const double* b, std::size_t b_stride) {
  std::array<double, kWidth> least;
  std::copy_n(row, kWidth, least.begin());
  for (const int name : named) {
    const double* a = table.first + static_cast<std::size_t>(name) * table.stride;
    for (std::size_t i = 0; i < kWidth; ++i) least[i] = std::min(least[i], a[i] + b[i]);
    b -= b_stride;
  }
  std::copy_n(least.begin(), kWidth, row);
}

}  // namespace

TANGRAM_WIDE_ROWS void lower_to_sums(double* row, const double* a, const double* b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b[i]);
}

TANGRAM_WIDE_ROWS void lower_to_sums(double* row, const double* a, double b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b);
}

TANGRAM_WIDE_ROWS void lower_to_sums(double* row, const RowTable& table, std::span<const int> named,
                                     const double* last, std::size_t last_stride, std::size_t size) {
  std::size_t i = 0;
  const auto rest = [&] { return RowTable{table.first + i, table.stride}; };
  for (; i + 16 <= size; i += 16) lower_part<16>(row + i, rest(), named, last + i, last_stride);
  for (; i + 4 <= size; i += 4) lower_part<4>(row + i, rest(), named, last + i, last_stride);
  for (; i < size; ++i) lower_part<1>(row + i, rest(), named, last + i, last_stride);
}

// Several minima side by side: none waits for the one before it.
TANGRAM_WIDE_ROWS double least_sum(const double* a, const double* b, std::size_t size) {
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

}  // namespace tangram::compose
