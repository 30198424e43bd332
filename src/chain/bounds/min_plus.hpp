// Inner loops over rows of numbers: what bounds spend their time on.
#pragma once

#include <cstddef>
#include <span>

namespace tangram::chain {

/// Lowers row[i] to a[i] + b[i] where that is less, for i below `size`. The row is none of the others.
void min_plus_update(double* row, const double* a, const double* b, std::size_t size);

/// Lowers row[i] to a[i] + b where that is less.
void min_plus_update(double* row, const double* a, double b, std::size_t size);

/// Rows in a table, one behind the other.
struct RowTable {
  const double* first = nullptr;
  std::size_t stride = 0;
};

/// Lowers row[i] to a[i] + b[i] where that is less, for the rows a of `table` that are named and, one for each, the
/// rows b before `last`: that itself, the one before it, and so on. The row is none of them.
void min_plus_update(double* row, const RowTable& table, std::span<const int> named, const double* last,
                     std::size_t last_stride, std::size_t size);

/// The least a[i] + b[i] for i below `size`; infinite: there is none.
[[nodiscard]] double min_plus_product(const double* a, const double* b, std::size_t size);

}  // namespace tangram::chain
