// With S the state in front of a chunk, c_t the decay from there to position t, and u_i what position i writes, a query
// of position t reads
//
//   read(t, x, n) = c_t S^T x + sum over i < n of c_t / c_i (k_i x) u_i
//
// so that y_t = read(t, q_t, t + 1). Mamba-2 writes u_t = b_t v_t; the delta rule b_t (v_t - read(t, k_t, t)), a
// triangular system in u, solved from the first position to the last, and its transpose from the last to the first. No
// state inside a chunk is ever worked out.
#include <algorithm>
#include <cmath>

#include "scan.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

using model::RecurrenceKind;

double inner_product(const double* a, const double* b, int length) {
  double sum = 0;
  for (int i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

/// One chunk: forward when it is made, backward when asked.
class Chunk {
 public:
  Chunk(RecurrenceKind kind, const HeadInputs& in, Range range, Matrix before)
      : kind_(kind), in_(in), range_(range), before_(std::move(before)), writes_(range.length(), in.value.columns()) {
    double decay = 0;
    for (int t = range.first; t < range.last; ++t) log_.push_back(decay += at(in.log_decay, t));
    for (int t = 0; t < range.length(); ++t) write(t);
  }

  void give(Matrix& out) const {
    for (int t = 0; t < range_.length(); ++t)
      read(t, in_.query.row(range_.first + t), t + 1, out.row(range_.first + t));
  }

  [[nodiscard]] Matrix after() const {
    const int last = range_.length() - 1;
    Matrix state = before_;
    state *= std::exp(at(log_, last));
    for (int i = 0; i <= last; ++i) {
      const double* key = in_.key.row(range_.first + i);
      for (int n = 0; n < state.rows(); ++n) {
        for (int p = 0; p < state.columns(); ++p) state.at(n, p) += decay(last, i) * key[n] * writes_.at(i, p);
      }
    }
    return state;
  }

  /// `to_state`: the gradient of after(), and then that of the state in front.
  void backward(const Matrix& gradient, Matrix& to_state, HeadInputs& out) {
    to_writes_ = Matrix(writes_.rows(), writes_.columns());
    to_log_.assign(log_.size(), 0);
    after_backward(to_state, out);
    for (int t = range_.length() - 1; t >= 0; --t) {
      const int row = range_.first + t;
      read_backward(t, in_.query.row(row), t + 1, gradient.row(row), out.query.row(row), to_state, out);
      write_backward(t, to_state, out);
    }
    double later = 0;
    for (int t = range_.length() - 1; t >= 0; --t) at(out.log_decay, range_.first + t) += later += at(to_log_, t);
  }

 private:
  [[nodiscard]] int key_width() const { return before_.rows(); }
  [[nodiscard]] int value_width() const { return before_.columns(); }
  [[nodiscard]] double decay(int t, int i) const { return std::exp(at(log_, t) - at(log_, i)); }

  void read(int t, const double* x, int limit, double* out) const {
    const double whole = std::exp(at(log_, t));
    for (int n = 0; n < key_width(); ++n) {
      for (int p = 0; p < value_width(); ++p) out[p] += whole * before_.at(n, p) * x[n];
    }
    for (int i = 0; i < limit; ++i) {
      const double score = decay(t, i) * inner_product(in_.key.row(range_.first + i), x, key_width());
      for (int p = 0; p < value_width(); ++p) out[p] += score * writes_.at(i, p);
    }
  }

  void read_backward(int t, const double* x, int limit, const double* gradient, double* to_x, Matrix& to_before,
                     HeadInputs& out) {
    const double whole = std::exp(at(log_, t));
    for (int n = 0; n < key_width(); ++n) {
      const double along = inner_product(before_.row(n), gradient, value_width());
      to_x[n] += whole * along;
      at(to_log_, t) += whole * along * x[n];
      for (int p = 0; p < value_width(); ++p) to_before.at(n, p) += whole * x[n] * gradient[p];
    }
    for (int i = 0; i < limit; ++i) {
      const double* key = in_.key.row(range_.first + i);
      double* to_key = out.key.row(range_.first + i);
      const double between = decay(t, i);
      const double score = inner_product(key, x, key_width());
      const double along = inner_product(writes_.row(i), gradient, value_width());
      for (int n = 0; n < key_width(); ++n) {
        to_x[n] += between * along * key[n];
        to_key[n] += between * along * x[n];
      }
      for (int p = 0; p < value_width(); ++p) to_writes_.at(i, p) += between * score * gradient[p];
      at(to_log_, t) += between * score * along;
      at(to_log_, i) -= between * score * along;
    }
  }

  [[nodiscard]] std::vector<double> recalled(int t) const {
    std::vector<double> known(static_cast<std::size_t>(value_width()));
    if (kind_ == RecurrenceKind::kGatedDelta) read(t, in_.key.row(range_.first + t), t, known.data());
    return known;
  }

  void write(int t) {
    const std::vector<double> known = recalled(t);
    const int row = range_.first + t;
    for (int p = 0; p < value_width(); ++p) {
      writes_.at(t, p) = at(in_.strength, row) * (in_.value.at(row, p) - at(known, p));
    }
  }

  void write_backward(int t, Matrix& to_before, HeadInputs& out) {
    const std::vector<double> known = recalled(t);
    const int row = range_.first + t;
    std::vector<double> to_known(known.size());
    for (int p = 0; p < value_width(); ++p) {
      const double gradient = to_writes_.at(t, p);
      at(out.strength, row) += gradient * (in_.value.at(row, p) - at(known, p));
      out.value.at(row, p) += gradient * at(in_.strength, row);
      at(to_known, p) = -gradient * at(in_.strength, row);
    }
    if (kind_ != RecurrenceKind::kGatedDelta) return;
    std::vector<double> to_key(static_cast<std::size_t>(key_width()));
    read_backward(t, in_.key.row(row), t, to_known.data(), to_key.data(), to_before, out);
    for (int n = 0; n < key_width(); ++n) out.key.at(row, n) += at(to_key, n);
  }

  void after_backward(Matrix& to_state, HeadInputs& out) {
    const int last = range_.length() - 1;
    for (int i = 0; i <= last; ++i) {
      const double* key = in_.key.row(range_.first + i);
      const double between = decay(last, i);
      for (int n = 0; n < key_width(); ++n) {
        const double along = inner_product(to_state.row(n), writes_.row(i), value_width());
        out.key.at(range_.first + i, n) += between * along;
        at(to_log_, last) += between * along * key[n];
        at(to_log_, i) -= between * along * key[n];
        for (int p = 0; p < value_width(); ++p) to_writes_.at(i, p) += between * key[n] * to_state.at(n, p);
      }
    }
    to_state *= std::exp(at(log_, last));
    for (int n = 0; n < key_width(); ++n) {
      at(to_log_, last) += inner_product(to_state.row(n), before_.row(n), value_width());
    }
  }

  RecurrenceKind kind_;
  const HeadInputs& in_;
  Range range_;
  Matrix before_;  ///< the state in front
  Matrix writes_;
  Matrix to_writes_;
  std::vector<double> log_;  ///< of the decay from the chunk's front
  std::vector<double> to_log_;
};

std::vector<Chunk> chunks_of(RecurrenceKind kind, const HeadInputs& in, int chunk) {
  std::vector<Chunk> all;
  Matrix state(in.key.columns(), in.value.columns());
  for (int first = 0; first < in.positions(); first += chunk) {
    all.emplace_back(kind, in, Range{first, std::min(first + chunk, in.positions())}, std::move(state));
    state = all.back().after();
  }
  return all;
}

}  // namespace

Matrix chunked_scan(RecurrenceKind kind, const HeadInputs& inputs, int chunk) {
  Matrix out(inputs.positions(), inputs.value.columns());
  for (const Chunk& one : chunks_of(kind, inputs, chunk)) one.give(out);
  return out;
}

HeadInputs chunked_scan_backward(RecurrenceKind kind, const HeadInputs& inputs, int chunk, const Matrix& gradient) {
  HeadInputs out = no_gradients(inputs);
  std::vector<Chunk> all = chunks_of(kind, inputs, chunk);
  Matrix to_state(inputs.key.columns(), inputs.value.columns());
  for (auto one = all.rbegin(); one != all.rend(); ++one) one->backward(gradient, to_state, out);
  return out;
}

}  // namespace tangram::execute
