#include "recurrence_layers.hpp"

#include <cmath>

#include "activations.hpp"

namespace tangram::execute {

namespace {

using Visit = std::function<void(int row, int from, int tap, int column)>;

void visit_convolution(const Matrix& input, int positions, int taps, const Visit& visit) {
  for (int row = 0; row < input.rows(); ++row) {
    for (int tap = 0; tap < taps; ++tap) {
      const int back = taps - 1 - tap;
      if (row % positions < back) continue;
      for (int c = 0; c < input.columns(); ++c) visit(row, row - back, tap, c);
    }
  }
}

}  // namespace

Matrix convolved(const Matrix& input, const Parameter& weight, int first_column, int positions) {
  const int taps = weight.value.rows() - 1;
  Matrix out(input.rows(), input.columns());
  for (int row = 0; row < out.rows(); ++row) {
    for (int c = 0; c < out.columns(); ++c) out.at(row, c) = weight.value.at(taps, first_column + c);
  }
  visit_convolution(input, positions, taps, [&](int row, int from, int tap, int c) {
    out.at(row, c) += weight.value.at(tap, first_column + c) * input.at(from, c);
  });
  return out;
}

Matrix convolved_backward(const Matrix& input, Parameter& weight, int first_column, int positions,
                          const Matrix& gradient) {
  const int taps = weight.value.rows() - 1;
  Matrix out(input.rows(), input.columns());
  for (int row = 0; row < out.rows(); ++row) {
    for (int c = 0; c < out.columns(); ++c) weight.gradient.at(taps, first_column + c) += gradient.at(row, c);
  }
  visit_convolution(input, positions, taps, [&](int row, int from, int tap, int c) {
    out.at(from, c) += weight.value.at(tap, first_column + c) * gradient.at(row, c);
    weight.gradient.at(tap, first_column + c) += gradient.at(row, c) * input.at(from, c);
  });
  return out;
}

Matrix unit_length(Matrix matrix, int width) {
  for (int row = 0; row < matrix.rows(); ++row) {
    for (int first = 0; first < matrix.columns(); first += width) {
      double* x = matrix.row(row) + first;
      double squares = kEpsilon;
      for (int c = 0; c < width; ++c) squares += x[c] * x[c];
      for (int c = 0; c < width; ++c) x[c] /= std::sqrt(squares);
    }
  }
  return matrix;
}

// With n = x / |x|:  dx = (d - n (n d)) / |x|.
Matrix unit_length_backward(const Matrix& input, int width, const Matrix& gradient) {
  Matrix out(input.rows(), input.columns());
  for (int row = 0; row < input.rows(); ++row) {
    for (int first = 0; first < input.columns(); first += width) {
      const double* x = input.row(row) + first;
      const double* d = gradient.row(row) + first;
      double squares = kEpsilon;
      double along = 0;
      for (int c = 0; c < width; ++c) {
        squares += x[c] * x[c];
        along += x[c] * d[c];
      }
      const double length = std::sqrt(squares);
      for (int c = 0; c < width; ++c) out.at(row, first + c) = d[c] / length - x[c] * along / (squares * length);
    }
  }
  return out;
}

namespace {

double inverse_rms_of(const double* x, int length) {
  double squares = 0;
  for (int c = 0; c < length; ++c) squares += x[c] * x[c];
  return 1 / std::sqrt(squares / length + kEpsilon);
}

}  // namespace

Matrix SegmentNorm::forward(const Matrix& input, const Parameter& weight) const {
  Matrix out(input.rows(), input.columns());
  for (int row = 0; row < input.rows(); ++row) {
    for (int first = 0; first < input.columns(); first += width) {
      const double r = inverse_rms_of(input.row(row) + first, width);
      for (int c = first; c < first + width; ++c)
        out.at(row, c) = input.at(row, c) * r * weight.value.at(0, weights(c));
    }
  }
  return out;
}

// As norm_backward (feed_forward.cpp) has it of whole rows.
Matrix SegmentNorm::backward(const Matrix& input, Parameter& weight, const Matrix& gradient) const {
  Matrix out(input.rows(), input.columns());
  for (int row = 0; row < input.rows(); ++row) {
    for (int first = 0; first < input.columns(); first += width) {
      const double r = inverse_rms_of(input.row(row) + first, width);
      double along = 0;
      for (int c = first; c < first + width; ++c) {
        along += weight.value.at(0, weights(c)) * gradient.at(row, c) * input.at(row, c);
        weight.gradient.at(0, weights(c)) += gradient.at(row, c) * input.at(row, c) * r;
      }
      for (int c = first; c < first + width; ++c) {
        const double slope = weight.value.at(0, weights(c)) * gradient.at(row, c);
        out.at(row, c) = r * slope - input.at(row, c) * r * r * r / width * along;
      }
    }
  }
  return out;
}

}  // namespace tangram::execute
