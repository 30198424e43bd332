#include "matrix.hpp"

#include <algorithm>

#include "tangram/base/assert.hpp"

namespace tangram::execute {

Matrix& Matrix::operator+=(const Matrix& other) {
  TANGRAM_ASSERT(same_shape(other));
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
  return *this;
}

Matrix& Matrix::operator*=(double factor) {
  for (double& value : values_) value *= factor;
  return *this;
}

Matrix product(const Matrix& a, const Matrix& b) {
  TANGRAM_ASSERT(a.columns() == b.rows());
  Matrix out(a.rows(), b.columns());
  for (int i = 0; i < a.rows(); ++i) {
    double* to = out.row(i);
    for (int k = 0; k < a.columns(); ++k) {
      const double factor = a.at(i, k);
      const double* from = b.row(k);
      for (int j = 0; j < b.columns(); ++j) to[j] += factor * from[j];
    }
  }
  return out;
}

Matrix product_transposed(const Matrix& a, const Matrix& b) {
  TANGRAM_ASSERT(a.columns() == b.columns());
  Matrix out(a.rows(), b.rows());
  for (int i = 0; i < a.rows(); ++i) {
    const double* left = a.row(i);
    for (int j = 0; j < b.rows(); ++j) {
      const double* right = b.row(j);
      double sum = 0;
      for (int k = 0; k < a.columns(); ++k) sum += left[k] * right[k];
      out.at(i, j) = sum;
    }
  }
  return out;
}

void add_transposed_product(Matrix& into, const Matrix& a, const Matrix& b) {
  TANGRAM_ASSERT(a.rows() == b.rows() && into.rows() == a.columns() && into.columns() == b.columns());
  for (int k = 0; k < a.rows(); ++k) {
    const double* right = b.row(k);
    for (int i = 0; i < a.columns(); ++i) {
      const double factor = a.at(k, i);
      double* to = into.row(i);
      for (int j = 0; j < b.columns(); ++j) to[j] += factor * right[j];
    }
  }
}

Range piece(int whole, int index, int count) {
  const auto edge = [&](std::int64_t i) { return static_cast<int>(std::int64_t{whole} * i / count); };
  return {edge(index), edge(index + 1)};
}

Matrix slice_positions(const Matrix& activation, int samples, Range range) {
  if (samples == 0) return {0, activation.columns()};
  const int positions = activation.rows() / samples;
  TANGRAM_ASSERT(activation.rows() % samples == 0 && Range(0, positions).holds(range));
  Matrix out(samples * range.length(), activation.columns());
  for (int s = 0; s < samples; ++s) {
    for (int p = 0; p < range.length(); ++p) {
      std::copy_n(activation.row(s * positions + range.first + p), activation.columns(),
                  out.row(s * range.length() + p));
    }
  }
  return out;
}

Matrix join_positions(std::span<const Matrix* const> pieces, int samples) {
  if (samples == 0) return {0, pieces.front()->columns()};
  int rows = 0;
  for (const Matrix* part : pieces) rows += part->rows();
  Matrix out(rows, pieces.front()->columns());
  const int positions = rows / samples;
  int before = 0;
  for (const Matrix* part : pieces) {
    const int own = part->rows() / samples;
    for (int s = 0; s < samples; ++s) {
      for (int p = 0; p < own; ++p) {
        std::copy_n(part->row(s * own + p), out.columns(), out.row(s * positions + before + p));
      }
    }
    before += own;
  }
  return out;
}

Matrix join_columns(const Matrix& left, const Matrix& right) {
  TANGRAM_ASSERT(left.rows() == right.rows());
  Matrix out(left.rows(), left.columns() + right.columns());
  for (int i = 0; i < out.rows(); ++i) {
    std::copy_n(left.row(i), left.columns(), out.row(i));
    std::copy_n(right.row(i), right.columns(), out.row(i) + left.columns());
  }
  return out;
}

Matrix slice_columns(const Matrix& matrix, Range columns) {
  Matrix out(matrix.rows(), columns.length());
  for (int i = 0; i < out.rows(); ++i) std::copy_n(matrix.row(i) + columns.first, columns.length(), out.row(i));
  return out;
}

}  // namespace tangram::execute
