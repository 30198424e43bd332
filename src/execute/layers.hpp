// The layers of a small model, forward and backward by hand, each on a rank's share. A forward pass keeps in its
// "kept" value what the backward pass needs; a backward pass adds to the gradients of the weights and returns the
// gradient of the input. Nothing here knows of pipelines.
#pragma once

#include <vector>

#include "parameter.hpp"
#include "place.hpp"

namespace tangram::execute {

// x / rms(x) * weight, row by row (Zhang, Sennrich, arXiv 1910.07467).
struct KeptNorm {
  Matrix input;
};
[[nodiscard]] Matrix norm_forward(const Parameter& weight, Matrix input, KeptNorm& kept);
[[nodiscard]] Matrix norm_backward(Parameter& weight, const KeptNorm& kept, const Matrix& gradient);

/// Two or three matrices around SiLU: columns of the first ones, rows of the last are split over tp or expert-tp.
struct FeedForwardWeights {
  Parameter* up = nullptr;
  Parameter* gate = nullptr;  ///< null: not gated
  Parameter* down = nullptr;
};
struct KeptFeedForward {
  Matrix input, up, gate;
};
/// The rank's part of the sum over its group.
[[nodiscard]] Matrix feed_forward(const FeedForwardWeights& weights, Matrix input, KeptFeedForward& kept);
[[nodiscard]] Matrix feed_forward_backward(const FeedForwardWeights& weights, const KeptFeedForward& kept,
                                           const Matrix& gradient);

/// Heads are split over tp, positions over cp.
struct AttentionWeights {
  SmallBlock shape;
  Parameter* latent = nullptr;  ///< null: keys and values come from the input itself
  Parameter* query = nullptr;
  Parameter* key = nullptr;
  Parameter* value = nullptr;
  Parameter* gate = nullptr;  ///< null: what is attended to is not gated
  Parameter* output = nullptr;
};
struct KeptAttention {
  Matrix input, latent, query, gate;
  Matrix key, value;  ///< of all positions
  Matrix attended;
  std::vector<Matrix> probabilities;  ///< of each sample and head; empty under selective recompute
};
/// `keep_probabilities` false: selective recompute, the backward pass works them out again.
[[nodiscard]] Task<Matrix> attention(const Place& place, const AttentionWeights& weights, Matrix input,
                                     bool keep_probabilities, KeptAttention& kept);
[[nodiscard]] Task<Matrix> attention_backward(const Place& place, const AttentionWeights& weights,
                                              const KeptAttention& kept, const Matrix& gradient);

/// Experts are split over ep, the width of each over expert-tp; the router is on every rank.
struct ExpertsWeights {
  int experts = 0;        ///< 0: none
  int chosen = 0;         ///< per token
  int groups = 1;         ///< of neighbours
  int chosen_groups = 1;  ///< that those of a token are in
  Parameter* router = nullptr;
  Parameter* down = nullptr;  ///< to the latent width that they work in, and back; null: they work in the block's
  Parameter* up = nullptr;
  std::vector<FeedForwardWeights> held;  ///< of this rank
};
/// What the members of an expert group sent the experts that this rank holds.
struct Dispatched {
  std::vector<std::vector<int>> counts;  ///< of each held expert, rows by member
  std::vector<Matrix> rows;              ///< of each held expert, one member's behind the other's
};
struct KeptExperts {
  Matrix input, gates;                 ///< of all experts, softmax
  Matrix latent;                       ///< the sum of their answers, where they work in another width
  std::vector<std::vector<int>> rows;  ///< of the input, per expert
  std::vector<KeptFeedForward> held;
  Dispatched arrived;           ///< without the rows, which the experts keep
  std::vector<Matrix> answers;  ///< of each expert, for `rows`
};
/// On rows that no other rank of the group holds.
[[nodiscard]] Task<Matrix> experts(const Place& place, const ExpertsWeights& weights, Matrix input, KeptExperts& kept);
[[nodiscard]] Task<Matrix> experts_backward(const Place& place, const ExpertsWeights& weights, const KeptExperts& kept,
                                            Matrix gradient);

}  // namespace tangram::execute
