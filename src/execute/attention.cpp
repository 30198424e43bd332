// Queries of the rank's own positions against keys and values of all positions, which are gathered over cp: the
// mathematics of ring attention without its order of work. Or those of a share of its heads at all positions, which
// ranks of cp exchange.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "activations.hpp"
#include "context_exchange.hpp"
#include "layers.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

/// The heads that attend on the rank, and which key-value head each reads, counted from the first that it has.
struct Heads {
  int first = 0;  ///< of the model's query heads
  int count = 0;
  int width = 0;
  int group = 1;  ///< query heads that share a key-value head
  [[nodiscard]] int key_value(int head) const { return (first + head) / group - first / group; }
};

bool exchanges_heads(const Place& place, const SmallBlock& shape) {
  return shape.exchanges_heads && place.degrees.cp > 1;
}

/// Of the model's query heads those of the tp rank, and of these what a rank of cp attends with.
Range heads_of_tensor(const Place& place, const SmallBlock& shape) {
  return piece(shape.heads, place.tp, place.degrees.tp);
}
Range heads_of_member(const Place& place, const SmallBlock& shape, int cp) {
  const Range all = heads_of_tensor(place, shape);
  if (!exchanges_heads(place, shape)) return all;
  const Range own = piece(all.length(), cp, place.degrees.cp);
  return {all.first + own.first, all.first + own.last};
}

Heads heads_of(const Place& place, const SmallBlock& shape) {
  const Range own = heads_of_member(place, shape, place.cp);
  return {own.first, own.length(), shape.head_width, shape.heads / shape.kv_heads};
}

Range queries_of(const Place& place, const SmallBlock& shape) {
  return exchanges_heads(place, shape) ? Range{0, place.positions} : place.context_range();
}

ColumnShares query_columns(const Place& place, const SmallBlock& shape) {
  return equal_columns(place, heads_of_tensor(place, shape).length() * shape.head_width);
}

/// Of the key-value heads of the tp rank those that a member's query heads read.
ColumnShares key_value_columns(const Place& place, const SmallBlock& shape) {
  const int group = shape.heads / shape.kv_heads;
  const int before = heads_of_tensor(place, shape).first / group;
  ColumnShares shares;
  for (int member = 0; member < place.degrees.cp; ++member) {
    const Range heads = heads_of_member(place, shape, member);
    shares.push_back({(heads.first / group - before) * shape.head_width,
                      ((heads.last - 1) / group + 1 - before) * shape.head_width});
  }
  return shares;
}

/// The positions that a query looks at; what lies outside has no weight.
Range seen(const SmallBlock& shape, int query, int positions) {
  Range range{0, positions};
  if (shape.packed > 0) {
    range.first = query / shape.packed * shape.packed;
    range.last = std::min(positions, range.first + shape.packed);
  }
  if (shape.causal) range.last = query + 1;
  if (shape.window == 0) return range;
  return {std::max(range.first, query - shape.window + 1), std::min(range.last, query + shape.window)};
}

/// Softmax of the scores of one sample and head; a row per own position, a column per position.
Matrix probabilities(const Place& place, const AttentionWeights& weights, const KeptAttention& kept, int sample,
                     int head) {
  const Heads heads = heads_of(place, weights.shape);
  const Range own = queries_of(place, weights.shape);
  const int q0 = head * heads.width;
  const int k0 = heads.key_value(head) * heads.width;
  const double root = std::sqrt(heads.width);
  Matrix out(own.length(), place.positions);
  for (int i = 0; i < own.length(); ++i) {
    const Range range = seen(weights.shape, own.first + i, place.positions);
    const double* q = kept.query.row(sample * own.length() + i) + q0;
    double* p = out.row(i);
    double highest = -std::numeric_limits<double>::infinity();
    for (int j = range.first; j < range.last; ++j) {
      const double* k = kept.key.row(sample * place.positions + j) + k0;
      double score = 0;
      for (int c = 0; c < heads.width; ++c) score += q[c] * k[c];
      p[j] = score / root;
      highest = std::max(highest, p[j]);
    }
    double sum = 0;
    for (int j = range.first; j < range.last; ++j) sum += p[j] = std::exp(p[j] - highest);
    for (int j = range.first; j < range.last; ++j) p[j] /= sum;
  }
  return out;
}

void attend(const Place& place, const SmallBlock& shape, const Matrix& p, int sample, int head, KeptAttention& kept) {
  const Heads heads = heads_of(place, shape);
  const int q0 = head * heads.width;
  const int k0 = heads.key_value(head) * heads.width;
  for (int i = 0; i < p.rows(); ++i) {
    const Range range = seen(shape, queries_of(place, shape).first + i, p.columns());
    double* out = kept.attended.row(sample * p.rows() + i) + q0;
    for (int j = range.first; j < range.last; ++j) {
      const double* v = kept.value.row(sample * place.positions + j) + k0;
      for (int c = 0; c < heads.width; ++c) out[c] += p.at(i, j) * v[c];
    }
  }
}

struct HeadGradients {
  Matrix query, key, value;
};

// P = softmax(S), S = q k^T / sqrt(d), out = P v:  dP = dout v^T,  dS = P (dP - sum(P dP)).
void attend_backward(const Place& place, const SmallBlock& shape, const Matrix& p, int sample, int head,
                     const KeptAttention& kept, const Matrix& gradient, HeadGradients& out) {
  const Heads heads = heads_of(place, shape);
  const double scale = 1 / std::sqrt(heads.width);
  const int q0 = head * heads.width;
  const int k0 = heads.key_value(head) * heads.width;
  std::vector<double> dp(static_cast<std::size_t>(p.columns()));
  for (int i = 0; i < p.rows(); ++i) {
    const int row = sample * p.rows() + i;
    const double* d = gradient.row(row) + q0;
    const Range range = seen(shape, queries_of(place, shape).first + i, p.columns());
    double along = 0;
    for (int j = range.first; j < range.last; ++j) {
      const double* v = kept.value.row(sample * place.positions + j) + k0;
      double* dv = out.value.row(sample * place.positions + j) + k0;
      double sum = 0;
      for (int c = 0; c < heads.width; ++c) {
        sum += d[c] * v[c];
        dv[c] += p.at(i, j) * d[c];
      }
      at(dp, j) = sum;
      along += p.at(i, j) * sum;
    }
    for (int j = range.first; j < range.last; ++j) {
      const double ds = p.at(i, j) * (at(dp, j) - along) * scale;
      const double* q = kept.query.row(row) + q0;
      const double* k = kept.key.row(sample * place.positions + j) + k0;
      double* dq = out.query.row(row) + q0;
      double* dk = out.key.row(sample * place.positions + j) + k0;
      for (int c = 0; c < heads.width; ++c) {
        dq[c] += ds * k[c];
        dk[c] += ds * q[c];
      }
    }
  }
}

/// What is projected back: what was attended to, times sigmoid(gate).
Matrix gated(const KeptAttention& kept) {
  Matrix out = kept.attended;
  for (std::size_t i = 0; i < kept.gate.values().size(); ++i) out.values()[i] *= sigmoid(kept.gate.values()[i]);
  return out;
}

/// Turns the gradient of gated() into that of what was attended to; the gradient of the gate.
Matrix gated_backward(const KeptAttention& kept, Matrix& gradient) {
  Matrix to_gate(kept.gate.rows(), kept.gate.columns());
  for (std::size_t i = 0; i < kept.gate.values().size(); ++i) {
    const double open = sigmoid(kept.gate.values()[i]);
    double& d = gradient.values()[i];
    to_gate.values()[i] = d * kept.attended.values()[i] * open * (1 - open);
    d *= open;
  }
  return to_gate;
}

std::vector<ColumnShares> kernel_columns(const Place& place, const SmallBlock& shape) {
  return {query_columns(place, shape), key_value_columns(place, shape), key_value_columns(place, shape)};
}

using HeadExchange = Task<std::vector<Matrix>> (*)(const Place&, std::vector<Matrix>, std::vector<ColumnShares>);

/// Puts what the exchange gives in the place of each matrix.
Task<void> exchange_in_place(const Place& place, std::vector<Matrix*> matrices, std::vector<ColumnShares> shares,
                             HeadExchange exchange) {
  std::vector<Matrix> all;
  for (Matrix* matrix : matrices) all.push_back(std::move(*matrix));
  all = co_await exchange(place, std::move(all), std::move(shares));
  for (std::size_t m = 0; m < all.size(); ++m) *matrices[m] = std::move(all[m]);
}

/// What is attended to, of all positions of own heads or of own positions of all heads; or its gradient.
Task<void> exchange_attended(const Place& place, const SmallBlock& shape, Matrix& attended, HeadExchange exchange) {
  if (!exchanges_heads(place, shape)) co_return;
  std::vector<Matrix*> matrices{&attended};
  std::vector<ColumnShares> shares{query_columns(place, shape)};
  co_await exchange_in_place(place, std::move(matrices), std::move(shares), exchange);
}

/// Queries, keys and values as projected become those that attend on this rank.
Task<void> to_kernel(const Place& place, const SmallBlock& shape, KeptAttention& kept) {
  if (exchanges_heads(place, shape)) {
    std::vector<Matrix*> matrices{&kept.query, &kept.key, &kept.value};
    co_await exchange_in_place(place, std::move(matrices), kernel_columns(place, shape), to_heads);
    co_return;
  }
  const std::array both{&kept.key, &kept.value};
  for (Matrix* matrix : both) {
    *matrix = co_await place.ranks.gather_positions(*place.context, place.rank, std::move(*matrix), place.samples);
  }
}

/// The same of their gradients, back.
Task<void> from_kernel(const Place& place, const SmallBlock& shape, HeadGradients& d) {
  if (exchanges_heads(place, shape)) {
    std::vector<Matrix*> matrices{&d.query, &d.key, &d.value};
    co_await exchange_in_place(place, std::move(matrices), kernel_columns(place, shape), to_positions);
    co_return;
  }
  const std::array both{&d.key, &d.value};
  for (Matrix* matrix : both) {
    *matrix = co_await place.ranks.scatter_positions(*place.context, place.rank, std::move(*matrix), place.samples);
  }
}

}  // namespace

Task<Matrix> attention(const Place& place, const AttentionWeights& weights, Matrix input, bool keep_probabilities,
                       KeptAttention& kept) {
  const Heads heads = heads_of(place, weights.shape);
  kept.query = linear(*weights.query, input);
  if (weights.latent != nullptr) kept.latent = linear(*weights.latent, input);
  const Matrix& source = weights.latent != nullptr ? kept.latent : input;
  kept.key = linear(*weights.key, source);
  kept.value = linear(*weights.value, source);
  co_await to_kernel(place, weights.shape, kept);
  kept.attended = Matrix(kept.query.rows(), kept.query.columns());
  for (int s = 0; s < place.samples; ++s) {
    for (int h = 0; h < heads.count; ++h) {
      Matrix p = probabilities(place, weights, kept, s, h);
      attend(place, weights.shape, p, s, h, kept);
      if (keep_probabilities) kept.probabilities.push_back(std::move(p));
    }
  }
  co_await exchange_attended(place, weights.shape, kept.attended, to_positions);
  if (weights.gate != nullptr) kept.gate = linear(*weights.gate, input);
  kept.input = std::move(input);
  co_return linear(*weights.output, gated(kept));
}

Task<Matrix> attention_backward(const Place& place, const AttentionWeights& weights, const KeptAttention& kept,
                                const Matrix& gradient) {
  const Heads heads = heads_of(place, weights.shape);
  Matrix attended = linear_backward(*weights.output, gated(kept), gradient);
  const Matrix to_gate = gated_backward(kept, attended);
  co_await exchange_attended(place, weights.shape, attended, to_heads);
  HeadGradients d{Matrix(kept.query.rows(), kept.query.columns()), Matrix(kept.key.rows(), kept.key.columns()),
                  Matrix(kept.value.rows(), kept.value.columns())};
  for (int s = 0; s < place.samples; ++s) {
    for (int h = 0; h < heads.count; ++h) {
      if (kept.probabilities.empty()) {
        attend_backward(place, weights.shape, probabilities(place, weights, kept, s, h), s, h, kept, attended, d);
      } else {
        const Matrix& p = kept.probabilities[flat_index(s, heads.count, h)];
        attend_backward(place, weights.shape, p, s, h, kept, attended, d);
      }
    }
  }
  co_await from_kernel(place, weights.shape, d);

  const Matrix& source = weights.latent != nullptr ? kept.latent : kept.input;
  Matrix out = linear_backward(*weights.query, kept.input, d.query);
  if (weights.gate != nullptr) out += linear_backward(*weights.gate, kept.input, to_gate);
  Matrix to_source = linear_backward(*weights.key, source, d.key);
  to_source += linear_backward(*weights.value, source, d.value);
  out += weights.latent == nullptr ? to_source : linear_backward(*weights.latent, kept.input, to_source);
  co_return out;
}

}  // namespace tangram::execute
