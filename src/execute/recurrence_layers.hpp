// What a recurrence has between its exchanges beside the scan, forward and backward by hand: a short convolution, keys
// and queries of length 1, a norm over neighbouring columns. Rows are positions, one sample's behind the other's.
#pragma once

#include <functional>

#include "parameter.hpp"

namespace tangram::execute {

/// A causal convolution of each column with weights of its own: a row of the weight a position, the last one for its
/// own, and a row of biases behind them. The input's columns are the weight's from `first_column` on.
[[nodiscard]] Matrix convolved(const Matrix& input, const Parameter& weight, int first_column, int positions);
[[nodiscard]] Matrix convolved_backward(const Matrix& input, Parameter& weight, int first_column, int positions,
                                        const Matrix& gradient);

/// x / |x| of each `width` neighbouring columns.
[[nodiscard]] Matrix unit_length(Matrix matrix, int width);
[[nodiscard]] Matrix unit_length_backward(const Matrix& input, int width, const Matrix& gradient);

/// x / rms(x) * weight of each `width` neighbouring columns; `weights`: the column of the weight that belongs to a
/// column.
struct SegmentNorm {
  int width = 1;
  std::function<int(int)> weights;

  [[nodiscard]] Matrix forward(const Matrix& input, const Parameter& weight) const;
  [[nodiscard]] Matrix backward(const Matrix& input, Parameter& weight, const Matrix& gradient) const;
};

}  // namespace tangram::execute
