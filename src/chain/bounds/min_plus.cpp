#include "min_plus.hpp"

#include <algorithm>
#include <array>
#include <cstring>
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

namespace {

// Four numbers at once: one or two registers, as the processor has it.
using Four = double __attribute__((vector_size(4 * sizeof(double))));

inline __attribute__((always_inline)) void read(const double* from, Four& to) { std::memcpy(&to, from, sizeof(Four)); }

// So many fours of the row are held while all sums pass by.
template <std::size_t kFours>
inline __attribute__((always_inline)) void update_fours(double* row, const RowTable& table, std::span<const int> named,
                                                        const double* b, std::size_t b_stride) {
  constexpr std::size_t kSize = 4;
  Four least[kFours];
  std::memcpy(least, row, sizeof(least));
  for (const int name : named) {
    const double* a = table.first + static_cast<std::size_t>(name) * table.stride;
    for (std::size_t i = 0; i < kFours; ++i) {
      Four x;
      Four y;
      read(a + i * kSize, x);
      read(b + i * kSize, y);
      x += y;
      least[i] = x < least[i] ? x : least[i];
    }
    b -= b_stride;
  }
  std::memcpy(row, least, sizeof(least));
}

inline __attribute__((always_inline)) void update_one(double* row, const RowTable& table, std::span<const int> named,
                                                      const double* b, std::size_t b_stride) {
  double least = *row;
  for (const int name : named) {
    least = std::min(least, table.first[static_cast<std::size_t>(name) * table.stride] + *b);
    b -= b_stride;
  }
  *row = least;
}

}  // namespace

TANGRAM_WIDE_ROWS void min_plus_update(double* row, const double* a, const double* b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b[i]);
}

TANGRAM_WIDE_ROWS void min_plus_update(double* row, const double* a, double b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b);
}

TANGRAM_WIDE_ROWS void min_plus_update(double* row, const RowTable& table, std::span<const int> named,
                                       const double* last, std::size_t last_stride, std::size_t size) {
  constexpr std::size_t kSize = 4;
  std::size_t i = 0;
  for (; i + 4 * kSize <= size; i += 4 * kSize) {
    update_fours<4>(row + i, {table.first + i, table.stride}, named, last + i, last_stride);
  }
  for (; i + kSize <= size; i += kSize) {
    update_fours<1>(row + i, {table.first + i, table.stride}, named, last + i, last_stride);
  }
  for (; i < size; ++i) update_one(row + i, {table.first + i, table.stride}, named, last + i, last_stride);
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
