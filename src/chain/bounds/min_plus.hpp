// Inner loops over rows of numbers: what bounds spend their time on.
#pragma once

#include <cstddef>

namespace tangram::chain {

/// Lowers row[i] to a[i] + b[i] where that is less, for i below `size`. The row is none of the others.
void min_plus_update(double* row, const double* a, const double* b, std::size_t size);

/// Lowers row[i] to a[i] + b where that is less.
void min_plus_update(double* row, const double* a, double b, std::size_t size);

/// The least a[i] + b[i] for i below `size`; infinite: there is none.
[[nodiscard]] double min_plus_product(const double* a, const double* b, std::size_t size);

}  // namespace tangram::chain
