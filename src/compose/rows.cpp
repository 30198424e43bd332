#include "rows.hpp"

#include <algorithm>

// Twice for x86-64, with AVX2 where the processor has it: sums and minima are the same to the last bit. Sanitizers do
// not stand choices that are made as early as while the program is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TANGRAM_WIDE_ROWS __attribute__((target_clones("avx2", "default")))
#else
#define TANGRAM_WIDE_ROWS
#endif

namespace tangram::compose {

TANGRAM_WIDE_ROWS void lower_to_sums(double* row, const double* a, const double* b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b[i]);
}

TANGRAM_WIDE_ROWS void lower_to_sums(double* row, const double* a, double b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) row[i] = std::min(row[i], a[i] + b);
}

}  // namespace tangram::compose
