// A colocated encoder on one rank: its share of the weights, its lane, its passes. Goes in: samples of a round. Comes
// out: what it made of them, sent to the ranks that read it; backward the same way round. Sample by sample, so that
// lanes may have unlike numbers of them, or of those that have any items.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "block.hpp"
#include "handover.hpp"
#include "misbehaviour.hpp"

namespace tangram::execute {

class EncoderProgram {
 public:
  /// The `number`-th of the job. Its weights go to `parameters`, which outlives it.
  EncoderProgram(const Job& job, int rank, int number, Communicator& communicator, std::deque<Parameter>& parameters,
                 const Misbehaviour& misbehaviour);

  /// Of the lane's share of the round that begins with, or is, a microbatch.
  [[nodiscard]] Task<void> forward(std::int64_t microbatch);
  [[nodiscard]] Task<void> backward(std::int64_t microbatch);

  /// Samples whose activations were kept at once.
  [[nodiscard]] std::int64_t most_held() const { return most_held_; }
  /// What should have been: all samples of a round of the lane, where there is a backward pass to keep them for.
  [[nodiscard]] std::int64_t planned_held() const;
  /// Of each sample of the lane: positions of this rank of the gradient of what was made of it.
  [[nodiscard]] const std::map<std::int64_t, Matrix>& returned() const { return returned_; }
  [[nodiscard]] Range positions() const { return place_.shard_range(); }

 private:
  struct Kept {
    std::vector<KeptBlock> blocks;
    KeptFeedForward connector;
  };

  void find_groups();
  void make_weights(std::deque<Parameter>& parameters);
  [[nodiscard]] std::vector<std::int64_t> samples_of(std::int64_t microbatch) const;
  [[nodiscard]] Task<Matrix> encode(std::int64_t sample, Kept& kept);
  [[nodiscard]] Task<void> encode_backward(std::int64_t sample, Kept& kept, Matrix gradient);
  void send(std::int64_t sample, const Matrix& made);
  [[nodiscard]] Task<Matrix> receive(std::int64_t sample);

  const Job& job_;
  const JobEncoder& encoder_;
  int number_;
  Misbehaviour misbehaviour_;
  const JobPipeline& pipeline_;
  Handover handover_;
  int lane_;
  Place place_;
  Copies copies_;  ///< ranks of all lanes of the job with the same slices
  EmbeddingWeights embedding_;
  std::vector<Block> blocks_;
  FeedForwardWeights connector_;
  std::vector<Parameter*> embedding_list_, connector_list_;
  std::map<std::int64_t, Kept> held_;  ///< by sample
  std::int64_t most_held_ = 0;
  std::map<std::int64_t, Matrix> returned_;
};

}  // namespace tangram::execute
