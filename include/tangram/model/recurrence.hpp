// Sequence mixers that carry a state of fixed size from token to token instead of looking at all tokens: Mamba-2 (Dao,
// Gu, "Transformers are SSMs", arXiv 2405.21060) and the gated delta rule (Yang, Kautz, Hatamizadeh, "Gated Delta
// Networks", arXiv 2412.06464). Goes in: dimensions. Comes out: what is counted from them alone.
//
// Both are built alike (2405.21060, section 7; 2412.06464, section 3.4): one projection of the input makes a gate,
// values, keys, queries and a few scalars a head; a short causal convolution runs over the channels of values, keys and
// queries; the recurrence makes a value of each head; these are normalised, gated and projected back. A head's state is
// key_dim x head_dim:
//
//   Mamba-2       S <- a S + dt k v^T,               y = S^T q + d v    (k, v, q: B, x, C of the paper)
//   gated delta   S <- a S + b k (v - a S^T k)^T,    y = S^T q          (k, q: of length 1)
#pragma once

#include <cstdint>
#include <string_view>

#include "tangram/base/units.hpp"

namespace tangram::model {

enum class RecurrenceKind : std::uint8_t { kMamba2, kGatedDelta };

/// The key of model files that says the kind: "mamba2", "gated_delta".
[[nodiscard]] std::string_view to_string(RecurrenceKind kind);

struct Recurrence {
  RecurrenceKind kind = RecurrenceKind::kMamba2;
  int heads = 0;             ///< of values and states
  int head_dim = 0;          ///< width of a value
  int groups = 0;            ///< of heads that share keys and queries; divides heads
  int key_dim = 0;           ///< width of a key and of a query: the state size of Mamba-2
  int convolution = 4;       ///< tokens that the causal convolution sees
  std::int64_t chunk = 256;  ///< tokens that are multiplied with each other at once; changes time alone
  bool convolution_bias = true;
  bool projection_bias = false;  ///< of both projections

  /// Values of a token.
  [[nodiscard]] std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
  /// Channels of the convolution: values, keys and queries.
  [[nodiscard]] std::int64_t convolved() const { return inner() + 2 * std::int64_t{groups} * key_dim; }
  /// Scalars of a token: the step size of each head, or its decay and its strength.
  [[nodiscard]] std::int64_t scalars() const { return (kind == RecurrenceKind::kMamba2 ? 1 : 2) * std::int64_t{heads}; }
  /// Columns of the projection of the input.
  [[nodiscard]] std::int64_t projected() const { return inner() + convolved() + scalars(); }

  bool operator==(const Recurrence&) const = default;
};

/// Parameters, by how tensor parallelism shards them.
struct RecurrenceParameters {
  std::int64_t matrices = 0;    ///< the two projections; sharded by heads and groups
  std::int64_t vectors = 0;     ///< convolution, scalars a head, norm of Mamba-2, biases; sharded likewise
  std::int64_t replicated = 0;  ///< bias of the projection back, norm of the delta rule, which all heads share
};
/// `hidden`: of the block.
[[nodiscard]] RecurrenceParameters parameters(const Recurrence& recurrence, std::int64_t hidden);

/// Forward FLOPs of the recurrence itself over `tokens` of one sample, 2 a multiply-add: a token's products with each
/// head's state, which are two (update, query), and three under the delta rule (also what the key recalls). Algorithms
/// by chunks compute more; model FLOPs do not depend on them.
[[nodiscard]] Flops recurrence_flops(const Recurrence& recurrence, std::int64_t tokens);

}  // namespace tangram::model
