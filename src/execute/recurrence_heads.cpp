#include "recurrence_heads.hpp"

#include <cmath>
#include <utility>

#include "activations.hpp"
#include "recurrence_layers.hpp"
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

Matrix each_value(Matrix matrix, double (*function)(double)) {
  for (double& value : matrix.values()) value = function(value);
  return matrix;
}

Matrix times(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.values().size(); ++i) a.values()[i] *= b.values()[i];
  return a;
}

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

}  // namespace

Matrix heads_forward(const Place& place, const RecurrenceWeights& weights, const KeptRecurrence& kept) {
  return Scanner(place, weights, kept).forward();
}

std::vector<Matrix> heads_backward(const Place& place, const RecurrenceWeights& weights, const KeptRecurrence& kept,
                                   const Matrix& gradient) {
  return Scanner(place, weights, kept).backward(gradient);
}

}  // namespace tangram::execute
