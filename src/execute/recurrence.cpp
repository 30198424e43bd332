// A recurrence as layers have it: projections, an exchange of positions for heads over cp, a causal convolution, the
// scan, a gated norm, the exchange back and the projection back. Heads and groups are split over tp, and between the
// exchanges over cp as well, so that a rank scans all positions of its heads.
#include "recurrence.hpp"

#include <cmath>
#include <functional>
#include <utility>

#include "activations.hpp"
#include "scan.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

using model::RecurrenceKind;

/// What a rank scans: some of the heads whose weights it holds.
struct Share {
  int heads = 0;
  int groups = 0;
  int first_head = 0;  ///< of those of the tp rank
  int first_group = 0;
  [[nodiscard]] int group_of(int head) const { return head / (heads / groups); }
};

Share share_of(const Place& place, const SmallRecurrence& shape) {
  const int ranks = place.degrees.tp * place.degrees.cp;
  Share share{shape.heads / ranks, shape.groups / ranks, 0, 0};
  share.first_head = place.cp * share.heads;
  share.first_group = place.cp * share.groups;
  return share;
}

// Own positions of all columns become all positions of own columns, and back: over cp, one exchange for all matrices.

Task<std::vector<Matrix>> to_heads(const Place& place, std::vector<Matrix> all) {
  const int ranks = place.degrees.cp;
  if (ranks == 1) co_return all;
  Contribution outgoing;
  for (int j = 0; j < ranks; ++j) {
    for (const Matrix& matrix : all) outgoing.push_back(slice_columns(matrix, piece(matrix.columns(), j, ranks)));
  }
  const auto rendezvous =
      co_await place.ranks.exchange(*place.context, place.rank, Collective::kAllToAll, std::move(outgoing));
  const int own = place.context->position(place.rank);
  const int count = static_cast<int>(all.size());
  for (int m = 0; m < count; ++m) {
    std::vector<const Matrix*> pieces;
    for (const Contribution& member : rendezvous->contributions) pieces.push_back(&at(member, own * count + m));
    at(all, m) = join_positions(pieces, place.samples);
  }
  co_return all;
}

Task<std::vector<Matrix>> to_positions(const Place& place, std::vector<Matrix> all) {
  const int ranks = place.degrees.cp;
  if (ranks == 1) co_return all;
  Contribution outgoing;
  for (int j = 0; j < ranks; ++j) {
    for (const Matrix& matrix : all) {
      outgoing.push_back(slice_positions(matrix, place.samples, piece(place.positions, j, ranks)));
    }
  }
  const auto rendezvous =
      co_await place.ranks.exchange(*place.context, place.rank, Collective::kAllToAll, std::move(outgoing));
  const int own = place.context->position(place.rank);
  const int count = static_cast<int>(all.size());
  for (int m = 0; m < count; ++m) {
    Matrix joined = at(rendezvous->contributions.front(), own * count + m);
    for (int j = 1; j < ranks; ++j)
      joined = join_columns(joined, at(at(rendezvous->contributions, j), own * count + m));
    at(all, m) = std::move(joined);
  }
  co_return all;
}

// A convolution of each column with its own weights over the positions up to its own: a row of weights a position, the
// last one its own, and a row of biases behind them.

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

Matrix each_value(Matrix matrix, double (*function)(double)) {
  for (double& value : matrix.values()) value = function(value);
  return matrix;
}

Matrix times(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.values().size(); ++i) a.values()[i] *= b.values()[i];
  return a;
}

// x / |x| of `width` neighbouring columns, row by row; backward dx = (d - n (n d)) / |x| with n what it gives.

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

/// x / rms(x) * weight of `width` neighbouring columns; `weights`: the column of the weight that belongs to a column.
struct SegmentNorm {
  int width = 1;
  std::function<int(int)> weights;

  [[nodiscard]] static double inverse_rms_of(const double* x, int length) {
    double squares = 0;
    for (int c = 0; c < length; ++c) squares += x[c] * x[c];
    return 1 / std::sqrt(squares / length + kEpsilon);
  }

  [[nodiscard]] Matrix forward(const Matrix& input, const Parameter& weight) const {
    Matrix out = input;
    for (int row = 0; row < input.rows(); ++row) {
      for (int c = 0; c < input.columns(); ++c) {
        const double r = inverse_rms_of(input.row(row) + c / width * width, width);
        out.at(row, c) *= r * weight.value.at(0, weights(c));
      }
    }
    return out;
  }

  [[nodiscard]] Matrix backward(const Matrix& input, Parameter& weight, const Matrix& gradient) const {
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
          out.at(row, c) =
              r * weight.value.at(0, weights(c)) * gradient.at(row, c) - input.at(row, c) * r * r * r / width * along;
        }
      }
    }
    return out;
  }
};

/// Everything between the exchanges, on all positions of a rank's heads.
class Scanner {
 public:
  Scanner(const Place& place, const RecurrenceWeights& weights, const KeptRecurrence& kept)
      : w_(weights),
        shape_(weights.shape),
        share_(share_of(place, weights.shape)),
        positions_(place.positions),
        samples_(place.samples),
        kept_(kept) {
    value_line_ = convolved(kept.value, *w_.value_convolution, share_.first_head * shape_.head_width, positions_);
    key_line_ = convolved(kept.key, *w_.key_convolution, share_.first_group * shape_.key_width, positions_);
    query_line_ = convolved(kept.query, *w_.query_convolution, share_.first_group * shape_.key_width, positions_);
    value_ = each_value(value_line_, silu);
    key_mixed_ = each_value(key_line_, silu);
    query_mixed_ = each_value(query_line_, silu);
    key_ = is_delta() ? unit_length(key_mixed_, shape_.key_width) : key_mixed_;
    query_ = is_delta() ? unit_length(query_mixed_, shape_.key_width) : query_mixed_;
  }

  [[nodiscard]] Matrix forward() const { return gated(scanned()); }

  /// Gradients of gate, value, key, query, step and strength, in the order of the projections.
  [[nodiscard]] std::vector<Matrix> backward(const Matrix& gradient) {
    const Matrix outputs = scanned();
    Matrix to_gate(kept_.gate.rows(), kept_.gate.columns());
    const Matrix to_outputs = gated_backward(outputs, gradient, to_gate);
    Matrix to_value(value_.rows(), value_.columns());
    Matrix to_key(key_.rows(), key_.columns());
    Matrix to_query(query_.rows(), query_.columns());
    Matrix to_step(kept_.step.rows(), kept_.step.columns());
    Matrix to_strength(kept_.strength.rows(), kept_.strength.columns());
    for (int s = 0; s < samples_; ++s) {
      for (int h = 0; h < share_.heads; ++h) {
        const HeadInputs in = inputs(s, h);
        const HeadInputs d = scan_backward(shape_.kind, in, shape_.chunk, slice(to_outputs, s, h, shape_.head_width));
        const int group = share_.group_of(h);
        add(d.value, s, h, to_value);
        add(d.key, s, group, to_key);
        add(d.query, s, group, to_query);
        scalars_backward(s, h, d, to_step, to_strength);
        if (!is_delta()) skip_backward(s, h, to_outputs, to_value);
      }
    }
    if (is_delta()) {
      to_key = unit_length_backward(key_mixed_, shape_.key_width, to_key);
      to_query = unit_length_backward(query_mixed_, shape_.key_width, to_query);
    }
    const int first_key = share_.first_group * shape_.key_width;
    std::vector<Matrix> out;
    out.push_back(std::move(to_gate));
    out.push_back(convolved_backward(kept_.value, *w_.value_convolution, share_.first_head * shape_.head_width,
                                     positions_, times(to_value, each_value(value_line_, silu_slope))));
    out.push_back(convolved_backward(kept_.key, *w_.key_convolution, first_key, positions_,
                                     times(to_key, each_value(key_line_, silu_slope))));
    out.push_back(convolved_backward(kept_.query, *w_.query_convolution, first_key, positions_,
                                     times(to_query, each_value(query_line_, silu_slope))));
    out.push_back(std::move(to_step));
    if (is_delta()) out.push_back(std::move(to_strength));
    return out;
  }

 private:
  [[nodiscard]] bool is_delta() const { return shape_.kind == RecurrenceKind::kGatedDelta; }
  [[nodiscard]] int row(int sample, int position) const { return sample * positions_ + position; }
  [[nodiscard]] int weight_of(int head) const { return share_.first_head + head; }

  /// The columns of the index-th head or group, of one sample.
  [[nodiscard]] Matrix slice(const Matrix& from, int sample, int index, int width) const {
    Matrix out(positions_, width);
    for (int t = 0; t < positions_; ++t) {
      for (int c = 0; c < width; ++c) out.at(t, c) = from.at(row(sample, t), index * width + c);
    }
    return out;
  }
  void add(const Matrix& part, int sample, int index, Matrix& to) const {
    for (int t = 0; t < positions_; ++t) {
      for (int c = 0; c < part.columns(); ++c) to.at(row(sample, t), index * part.columns() + c) += part.at(t, c);
    }
  }

  /// softplus(step + bias): the step size of Mamba-2, and what decays both.
  [[nodiscard]] double step_size(int at_row, int head) const {
    return softplus(kept_.step.at(at_row, head) + w_.bias->value.at(0, weight_of(head)));
  }
  [[nodiscard]] double rate(int head) const { return std::exp(w_.rate->value.at(0, weight_of(head))); }

  [[nodiscard]] HeadInputs inputs(int sample, int head) const {
    const int group = share_.group_of(head);
    HeadInputs in{slice(key_, sample, group, shape_.key_width),
                  slice(query_, sample, group, shape_.key_width),
                  slice(value_, sample, head, shape_.head_width),
                  {},
                  {}};
    for (int t = 0; t < positions_; ++t) {
      const double step = step_size(row(sample, t), head);
      in.log_decay.push_back(-rate(head) * step);
      in.strength.push_back(is_delta() ? sigmoid(kept_.strength.at(row(sample, t), head)) : step);
    }
    return in;
  }

  void scalars_backward(int sample, int head, const HeadInputs& d, Matrix& to_step, Matrix& to_strength) const {
    const int weight = weight_of(head);
    for (int t = 0; t < positions_; ++t) {
      const int r = row(sample, t);
      const double step = step_size(r, head);
      double to_size = -rate(head) * at(d.log_decay, t);
      w_.rate->gradient.at(0, weight) += -rate(head) * step * at(d.log_decay, t);
      if (is_delta()) {
        const double strength = sigmoid(kept_.strength.at(r, head));
        to_strength.at(r, head) += at(d.strength, t) * strength * (1 - strength);
      } else {
        to_size += at(d.strength, t);
      }
      const double slope = sigmoid(kept_.step.at(r, head) + w_.bias->value.at(0, weight));
      to_step.at(r, head) += to_size * slope;
      w_.bias->gradient.at(0, weight) += to_size * slope;
    }
  }

  [[nodiscard]] Matrix scanned() const {
    Matrix out(value_.rows(), value_.columns());
    for (int s = 0; s < samples_; ++s) {
      for (int h = 0; h < share_.heads; ++h) {
        Matrix given = scan(shape_.kind, inputs(s, h), shape_.chunk);
        if (!is_delta()) {
          Matrix skipped = slice(value_, s, h, shape_.head_width);
          skipped *= w_.skip->value.at(0, weight_of(h));
          given += skipped;
        }
        add(given, s, h, out);
      }
    }
    return out;
  }

  void skip_backward(int sample, int head, const Matrix& gradient, Matrix& to_value) const {
    const double skip = w_.skip->value.at(0, weight_of(head));
    for (int t = 0; t < positions_; ++t) {
      for (int c = head * shape_.head_width; c < (head + 1) * shape_.head_width; ++c) {
        const double d = gradient.at(row(sample, t), c);
        to_value.at(row(sample, t), c) += skip * d;
        w_.skip->gradient.at(0, weight_of(head)) += d * value_.at(row(sample, t), c);
      }
    }
  }

  /// Of Mamba-2 over the heads of a group, a weight a channel; of the delta rule over a head, with weights that all
  /// heads share.
  [[nodiscard]] SegmentNorm norm() const {
    const int head = shape_.head_width;
    if (is_delta()) return {head, [head](int column) { return column % head; }};
    const int first = share_.first_head * head;
    return {share_.heads / share_.groups * head, [first](int column) { return first + column; }};
  }

  // Mamba-2: norm(y silu(z)); the delta rule: norm(y) silu(z).
  [[nodiscard]] Matrix gated(const Matrix& outputs) const {
    const Matrix gate = each_value(kept_.gate, silu);
    if (is_delta()) return times(norm().forward(outputs, *w_.norm), gate);
    return norm().forward(times(outputs, gate), *w_.norm);
  }

  [[nodiscard]] Matrix gated_backward(const Matrix& outputs, const Matrix& gradient, Matrix& to_gate) const {
    const Matrix gate = each_value(kept_.gate, silu);
    const Matrix slopes = each_value(kept_.gate, silu_slope);
    if (is_delta()) {
      to_gate = times(times(norm().forward(outputs, *w_.norm), gradient), slopes);
      return norm().backward(outputs, *w_.norm, times(gradient, gate));
    }
    const Matrix to_product = norm().backward(times(outputs, gate), *w_.norm, gradient);
    to_gate = times(times(to_product, outputs), slopes);
    return times(to_product, gate);
  }

  const RecurrenceWeights& w_;
  const SmallRecurrence& shape_;
  Share share_;
  int positions_;
  int samples_;
  const KeptRecurrence& kept_;
  Matrix value_line_, key_line_, query_line_;  ///< of the convolutions
  Matrix value_, key_mixed_, query_mixed_;     ///< activated
  Matrix key_, query_;                         ///< what is scanned
};

std::vector<Parameter*> projections(const RecurrenceWeights& weights) {
  std::vector<Parameter*> all{weights.gate, weights.value, weights.key, weights.query, weights.step};
  if (weights.strength != nullptr) all.push_back(weights.strength);
  return all;
}

}  // namespace

Task<Matrix> recurrence(const Place& place, const RecurrenceWeights& weights, Matrix input, KeptRecurrence& kept) {
  std::vector<Matrix> projected;
  for (const Parameter* weight : projections(weights)) projected.push_back(product(input, weight->value));
  projected = co_await to_heads(place, std::move(projected));
  kept.gate = std::move(projected[0]);
  kept.value = std::move(projected[1]);
  kept.key = std::move(projected[2]);
  kept.query = std::move(projected[3]);
  kept.step = std::move(projected[4]);
  if (weights.strength != nullptr) kept.strength = std::move(projected[5]);
  std::vector<Matrix> given;
  given.push_back(Scanner(place, weights, kept).forward());
  given = co_await to_positions(place, std::move(given));
  kept.given = std::move(given.front());
  kept.input = std::move(input);
  co_return product(kept.given, weights.output->value);
}

Task<Matrix> recurrence_backward(const Place& place, const RecurrenceWeights& weights, const KeptRecurrence& kept,
                                 const Matrix& gradient) {
  add_product(*weights.output, kept.given, gradient);
  std::vector<Matrix> to_given;
  to_given.push_back(product_transposed(gradient, weights.output->value));
  to_given = co_await to_heads(place, std::move(to_given));
  std::vector<Matrix> to_projected = Scanner(place, weights, kept).backward(to_given.front());
  to_projected = co_await to_positions(place, std::move(to_projected));
  Matrix out(kept.input.rows(), kept.input.columns());
  const std::vector<Parameter*> all = projections(weights);
  for (std::size_t i = 0; i < all.size(); ++i) {
    add_product(*all[i], kept.input, to_projected[i]);
    out += product_transposed(to_projected[i], all[i]->value);
  }
  co_return out;
}

}  // namespace tangram::execute
