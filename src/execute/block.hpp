// One block, and the two ends of the model, on a rank's share.
#pragma once

#include <optional>
#include <vector>

#include "layers.hpp"
#include "recurrence.hpp"

namespace tangram::execute {

struct Block {
  bool recompute = false;            ///< in full: only the input is kept
  bool keep_probabilities = true;    ///< false: selective recompute
  bool parallel_attention = false;   ///< attention and feed-forward read the same input
  Parameter* first_norm = nullptr;   ///< of what mixes positions; null where nothing does
  Parameter* second_norm = nullptr;  ///< of the feed-forward; null without one, and with parallel attention
  AttentionWeights attention;
  std::optional<RecurrenceWeights> recurrence;  ///< in its place
  std::vector<FeedForwardWeights> wide;         ///< dense and shared-expert layers, split over tp
  ExpertsWeights experts;
  std::vector<Parameter*> weights;  ///< all of them
};

struct KeptBlock {
  Matrix input;  ///< under full recompute
  KeptNorm first_norm, second_norm;
  KeptAttention attention;
  KeptRecurrence recurrence;
  std::vector<KeptFeedForward> wide;
  KeptExperts experts;
};

[[nodiscard]] Task<Matrix> forward(const Place& place, const Block& block, Matrix input, KeptBlock& kept);
[[nodiscard]] Task<Matrix> backward(const Place& place, const Block& block, KeptBlock& kept, Matrix gradient);

/// The residual stream, and beside an encoder the embeddings of the text that only later blocks read.
struct Stream {
  Matrix current;
  Matrix text;  ///< empty behind the last encoder
};

/// Tables are split over tp by rows; what a rank has not is zero until all add up.
struct EmbeddingWeights {
  Parameter* tokens = nullptr;
  Parameter* patches = nullptr;  ///< of models that begin with an encoder
  Parameter* positions = nullptr;
};
/// `samples`: the numbers, in the batch, of the rank's samples.
[[nodiscard]] Task<Stream> embed(const Place& place, const SmallModel& model, const EmbeddingWeights& weights,
                                 std::vector<std::int64_t> samples);
[[nodiscard]] Task<void> embed_backward(const Place& place, const SmallModel& model, const EmbeddingWeights& weights,
                                        std::vector<std::int64_t> samples, Stream gradient);

struct HeadWeights {
  Parameter* norm = nullptr;
  Parameter* table = nullptr;
};
struct KeptHead {
  KeptNorm norm;
  Matrix wide;    ///< what the table multiplies
  Matrix slopes;  ///< of the loss, by logit
};
/// The rank's part of the loss: cross entropy with the next token, divided by the tokens of the whole batch. Every tp
/// rank of a replica has the same.
[[nodiscard]] Task<double> head(const Place& place, const SmallModel& model, const HeadWeights& weights,
                                std::vector<std::int64_t> samples, double tokens_of_batch, Matrix input,
                                KeptHead& kept);
[[nodiscard]] Task<Matrix> head_backward(const Place& place, const HeadWeights& weights, const KeptHead& kept);

}  // namespace tangram::execute
