// Small dense fp64 matrices. An activation is one: a row per (sample, position), samples first; a column per feature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tangram::execute {

/// Of what stands row by row.
[[nodiscard]] inline std::size_t flat_index(int row, int columns, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

class Matrix {
 public:
  Matrix() = default;
  Matrix(int rows, int columns) : rows_(rows), columns_(columns), values_(flat_index(rows, columns, 0)) {}

  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] bool same_shape(const Matrix& other) const {
    return rows_ == other.rows_ && columns_ == other.columns_;
  }

  [[nodiscard]] double& at(int row, int column) { return values_[place(row, column)]; }
  [[nodiscard]] double at(int row, int column) const { return values_[place(row, column)]; }
  [[nodiscard]] double* row(int index) { return values_.data() + place(index, 0); }
  [[nodiscard]] const double* row(int index) const { return values_.data() + place(index, 0); }
  /// Row by row.
  [[nodiscard]] std::vector<double>& values() { return values_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  Matrix& operator+=(const Matrix& other);
  Matrix& operator*=(double factor);

 private:
  [[nodiscard]] std::size_t place(int row, int column) const { return flat_index(row, columns_, column); }

  int rows_ = 0;
  int columns_ = 0;
  std::vector<double> values_;
};

/// a b
[[nodiscard]] Matrix product(const Matrix& a, const Matrix& b);
/// a b^T
[[nodiscard]] Matrix product_transposed(const Matrix& a, const Matrix& b);
/// into += a^T b
void add_transposed_product(Matrix& into, const Matrix& a, const Matrix& b);

/// A half-open range of positions, samples, rows or columns.
struct Range {
  int first = 0;
  int last = 0;
  [[nodiscard]] int length() const { return last - first; }
  [[nodiscard]] bool holds(const Range& other) const { return first <= other.first && other.last <= last; }
  bool operator==(const Range&) const = default;
};

/// The index-th of `count` pieces of [0, whole); their lengths differ by at most one.
[[nodiscard]] Range piece(int whole, int index, int count);

/// Positions [range) of every sample of an activation whose samples have equally many.
[[nodiscard]] Matrix slice_positions(const Matrix& activation, int samples, Range range);
/// The inverse: pieces one behind the other along the sequence, sample by sample.
[[nodiscard]] Matrix join_positions(std::span<const Matrix* const> pieces, int samples);

/// Columns one beside the other, and taken apart again.
[[nodiscard]] Matrix join_columns(const Matrix& left, const Matrix& right);
[[nodiscard]] Matrix slice_columns(const Matrix& matrix, Range columns);

}  // namespace tangram::execute
