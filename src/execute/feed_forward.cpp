#include <cmath>

#include "activations.hpp"
#include "layers.hpp"

namespace tangram::execute {

namespace {

double inverse_rms(const double* row, int columns) {
  double squares = 0;
  for (int j = 0; j < columns; ++j) squares += row[j] * row[j];
  return 1 / std::sqrt(squares / columns + kEpsilon);
}

}  // namespace

Matrix norm_forward(const Parameter& weight, Matrix input, KeptNorm& kept) {
  Matrix out(input.rows(), input.columns());
  for (int i = 0; i < input.rows(); ++i) {
    const double scale = inverse_rms(input.row(i), input.columns());
    for (int j = 0; j < input.columns(); ++j) out.at(i, j) = input.at(i, j) * scale * weight.value.at(0, j);
  }
  kept.input = std::move(input);
  return out;
}

// With r = 1 / rms(x):  dx = r w dy - x r^3 / n sum(w dy x),  dw = sum over rows of dy x r.
Matrix norm_backward(Parameter& weight, const KeptNorm& kept, const Matrix& gradient) {
  const Matrix& x = kept.input;
  Matrix out(x.rows(), x.columns());
  for (int i = 0; i < x.rows(); ++i) {
    const double r = inverse_rms(x.row(i), x.columns());
    double along = 0;
    for (int j = 0; j < x.columns(); ++j) {
      along += weight.value.at(0, j) * gradient.at(i, j) * x.at(i, j);
      weight.gradient.at(0, j) += gradient.at(i, j) * x.at(i, j) * r;
    }
    for (int j = 0; j < x.columns(); ++j) {
      out.at(i, j) = r * weight.value.at(0, j) * gradient.at(i, j) - x.at(i, j) * r * r * r / x.columns() * along;
    }
  }
  return out;
}

namespace {

/// What the last matrix multiplies.
Matrix activated(const KeptFeedForward& kept) {
  Matrix hidden(kept.up.rows(), kept.up.columns());
  for (std::size_t i = 0; i < hidden.values().size(); ++i) {
    const double up = kept.up.values()[i];
    hidden.values()[i] = kept.gate.empty() ? silu(up) : silu(kept.gate.values()[i]) * up;
  }
  return hidden;
}

}  // namespace

Matrix feed_forward(const FeedForwardWeights& weights, Matrix input, KeptFeedForward& kept) {
  kept.up = linear(*weights.up, input);
  if (weights.gate != nullptr) kept.gate = linear(*weights.gate, input);
  kept.input = std::move(input);
  return linear(*weights.down, activated(kept));
}

Matrix feed_forward_backward(const FeedForwardWeights& weights, const KeptFeedForward& kept, const Matrix& gradient) {
  const Matrix hidden = linear_backward(*weights.down, activated(kept), gradient);
  Matrix up(hidden.rows(), hidden.columns());
  Matrix gate(hidden.rows(), weights.gate != nullptr ? hidden.columns() : 0);
  for (std::size_t i = 0; i < hidden.values().size(); ++i) {
    const double d = hidden.values()[i];
    const double u = kept.up.values()[i];
    if (weights.gate == nullptr) {
      up.values()[i] = d * silu_slope(u);
    } else {
      const double g = kept.gate.values()[i];
      up.values()[i] = d * silu(g);
      gate.values()[i] = d * u * silu_slope(g);
    }
  }
  Matrix out = linear_backward(*weights.up, kept.input, up);
  if (weights.gate != nullptr) out += linear_backward(*weights.gate, kept.input, gate);
  return out;
}

}  // namespace tangram::execute
