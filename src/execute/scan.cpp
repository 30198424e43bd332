#include "scan.hpp"

#include <cmath>

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

using model::RecurrenceKind;

/// state^T x, of the key's width to the value's.
std::vector<double> recall(const Matrix& state, const double* x) {
  std::vector<double> out(static_cast<std::size_t>(state.columns()));
  for (int n = 0; n < state.rows(); ++n) {
    for (int p = 0; p < state.columns(); ++p) at(out, p) += state.at(n, p) * x[n];
  }
  return out;
}

/// state y, of the value's width to the key's, added to `out`.
void add_product_with(const Matrix& state, const double* y, double* out) {
  for (int n = 0; n < state.rows(); ++n) {
    for (int p = 0; p < state.columns(); ++p) out[n] += state.at(n, p) * y[p];
  }
}

/// What a position writes, times its key: strength * value, of the delta rule less what the decayed state recalls.
std::vector<double> write_of(RecurrenceKind kind, const HeadInputs& in, int t, const Matrix& decayed) {
  std::vector<double> out(in.value.row(t), in.value.row(t) + in.value.columns());
  if (kind == RecurrenceKind::kGatedDelta) {
    const std::vector<double> known = recall(decayed, in.key.row(t));
    for (std::size_t p = 0; p < out.size(); ++p) out[p] -= known[p];
  }
  for (double& value : out) value *= at(in.strength, t);
  return out;
}

void write(Matrix& state, const double* key, const std::vector<double>& what) {
  for (int n = 0; n < state.rows(); ++n) {
    for (int p = 0; p < state.columns(); ++p) state.at(n, p) += key[n] * at(what, p);
  }
}

/// The state behind each position.
std::vector<Matrix> states(RecurrenceKind kind, const HeadInputs& in) {
  std::vector<Matrix> all;
  Matrix state(in.key.columns(), in.value.columns());
  for (int t = 0; t < in.positions(); ++t) {
    state *= std::exp(at(in.log_decay, t));
    const std::vector<double> what = write_of(kind, in, t, state);
    write(state, in.key.row(t), what);
    all.push_back(state);
  }
  return all;
}

double dot(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) sum += a.values()[i] * b.values()[i];
  return sum;
}

}  // namespace

HeadInputs no_gradients(const HeadInputs& inputs) {
  return {Matrix(inputs.key.rows(), inputs.key.columns()), Matrix(inputs.query.rows(), inputs.query.columns()),
          Matrix(inputs.value.rows(), inputs.value.columns()), std::vector<double>(inputs.log_decay.size()),
          std::vector<double>(inputs.strength.size())};
}

Matrix stepwise_scan(RecurrenceKind kind, const HeadInputs& in) {
  Matrix out(in.positions(), in.value.columns());
  const std::vector<Matrix> all = states(kind, in);
  for (int t = 0; t < in.positions(); ++t) {
    const std::vector<double> y = recall(at(all, t), in.query.row(t));
    std::copy(y.begin(), y.end(), out.row(t));
  }
  return out;
}

// y = S^T q, S = D + k w^T, D = a S', w = b (v - [D^T k]):  with G the gradient of S, dw = G^T k, dk = G w,
// db = dw r with r = w / b, dv = b dw, and of what is recalled e = -b dw: dD = G + k e^T, dk += D e; da = sum(dD S').
HeadInputs stepwise_scan_backward(RecurrenceKind kind, const HeadInputs& in, const Matrix& gradient) {
  HeadInputs out = no_gradients(in);
  const std::vector<Matrix> all = states(kind, in);
  Matrix to_state(in.key.columns(), in.value.columns());
  for (int t = in.positions() - 1; t >= 0; --t) {
    const double* dy = gradient.row(t);
    add_product_with(at(all, t), dy, out.query.row(t));
    write(to_state, in.query.row(t), std::vector<double>(dy, dy + gradient.columns()));
    Matrix decayed = t > 0 ? at(all, t - 1) : Matrix(to_state.rows(), to_state.columns());
    decayed *= std::exp(at(in.log_decay, t));
    const std::vector<double> what = write_of(kind, in, t, decayed);
    const std::vector<double> to_what = recall(to_state, in.key.row(t));
    add_product_with(to_state, what.data(), out.key.row(t));
    const double strength = at(in.strength, t);
    std::vector<double> to_known(to_what.size());
    const std::vector<double> known = recall(decayed, in.key.row(t));
    for (int p = 0; p < in.value.columns(); ++p) {
      const bool delta = kind == RecurrenceKind::kGatedDelta;
      at(out.strength, t) += at(to_what, p) * (in.value.at(t, p) - (delta ? at(known, p) : 0));
      out.value.at(t, p) += strength * at(to_what, p);
      if (delta) at(to_known, p) = -strength * at(to_what, p);
    }
    add_product_with(decayed, to_known.data(), out.key.row(t));
    write(to_state, in.key.row(t), to_known);
    at(out.log_decay, t) = dot(to_state, decayed);
    to_state *= std::exp(at(in.log_decay, t));
  }
  return out;
}

Matrix scan(RecurrenceKind kind, const HeadInputs& inputs, int chunk) {
  return chunk == 0 ? stepwise_scan(kind, inputs) : chunked_scan(kind, inputs, chunk);
}

HeadInputs scan_backward(RecurrenceKind kind, const HeadInputs& inputs, int chunk, const Matrix& gradient) {
  return chunk == 0 ? stepwise_scan_backward(kind, inputs, gradient)
                    : chunked_scan_backward(kind, inputs, chunk, gradient);
}

}  // namespace tangram::execute
