// One rank: its weights, its place, and what it does in an iteration. Goes in: a job and the rank's number in it. Comes
// out: its share of the loss, synchronised gradients, stepped weights, and how many microbatches it held at once.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "block.hpp"
#include "encoder.hpp"
#include "job.hpp"
#include "misbehaviour.hpp"
#include "pass_order.hpp"
#include "tangram/base/at.hpp"
#include "tangram/execute/finding.hpp"

namespace tangram::execute {

/// Where a rank's piece of an activation comes from or goes to.
struct Route {
  int peer = 0;
  int transfer = 0;  ///< in the list of the boundary
  Range samples;     ///< of the rank's own
  Range positions;   ///< of the rank's shard
};

/// Everything in flight of one microbatch in one chunk.
struct KeptMicrobatch {
  std::vector<KeptBlock> blocks;
  KeptHead head;
};

/// A product of a weight's gradient that a backward pass has put off.
struct PutOffProduct {
  Parameter* weight = nullptr;
  Matrix read;  ///< by the layer
  Matrix gave;  ///< the gradient of what it gave
};

/// All slices of a matrix that several parts hold, in the order of the group.
struct Holders {
  Group* group = nullptr;
  std::vector<const Parameter*> pieces;
};

class RankProgram {
 public:
  /// Throws RunStopped where the listed transfers do not bring what the rank works on.
  RankProgram(const Job& job, int rank, Communicator& communicator, const Misbehaviour& misbehaviour);

  [[nodiscard]] Task<void> run();

  [[nodiscard]] std::deque<Parameter>& parameters() { return parameters_; }
  [[nodiscard]] const std::deque<Parameter>& parameters() const { return parameters_; }
  void set_holders(const std::map<std::string, Holders>* holders) { holders_ = holders; }
  /// Counted once among tp ranks.
  [[nodiscard]] double loss() const { return place_.tp == 0 ? loss_ : 0; }
  [[nodiscard]] std::int64_t most_in_flight() const { return most_in_flight_; }
  /// Colocated ones, in the job's order.
  [[nodiscard]] const std::deque<EncoderProgram>& encoders() const { return encoders_; }
  /// By encoder and sample: positions of this rank of what was added to the embeddings; of the first stage.
  using Embeddings = std::map<std::pair<int, std::int64_t>, Matrix>;
  [[nodiscard]] const Embeddings& embeddings() const { return embeddings_; }
  /// Whose loss this rank has worked out; counted once among the ranks of a replica.
  [[nodiscard]] std::int64_t samples_judged() const { return place_.tp == 0 && place_.cp == 0 ? samples_judged_ : 0; }

 private:
  void find_groups();
  void make_weights();
  void make_routes();
  [[nodiscard]] std::vector<Route> routes(const std::vector<JobTransfer>& transfers, bool incoming) const;
  void require_cover(const std::vector<Route>& routes, const std::string& what) const;

  [[nodiscard]] Task<void> forward_pass(const Pass& pass);
  [[nodiscard]] Task<void> backward_pass(const Pass& pass);
  [[nodiscard]] Task<void> weight_pass(const Pass& pass);
  /// Of a block, what its backward pass has put off.
  void keep_put_off(const Block& block, std::int64_t microbatch);
  [[nodiscard]] Task<void> run_pass(const Pass& pass);
  /// What crosses the cut before or behind the chunk at work.
  [[nodiscard]] Task<Matrix> receive(const std::vector<Route>& routes, const Pass& pass, int columns);
  void send(const std::vector<Route>& routes, const Pass& pass, const Matrix& activation);
  /// The chunk's place in the chain.
  [[nodiscard]] int position_of(int chunk) const {
    return chunk * static_cast<int>(pipeline_.stages.size()) + self_.stage;
  }
  [[nodiscard]] bool has_embedding(int chunk) const { return stage_.embedding && chunk == 0; }
  [[nodiscard]] bool has_head(int chunk) const { return stage_.head && chunk + 1 == pipeline_.chunks(); }
  [[nodiscard]] Range chunk_of(int chunk) const { return at(stage_.chunks, chunk); }
  /// Of blocks_, those of the chunk.
  [[nodiscard]] std::span<Block> blocks_of(int chunk);
  // Colocated encoders (rank_encoders.cpp)
  void make_encoders(Communicator& communicator);
  [[nodiscard]] bool takes_turns() const { return !encoders_.empty() && !job_.three_phases; }
  /// Microbatches that a fault leaves out.
  [[nodiscard]] bool skips(const Pass& pass) const;
  [[nodiscard]] Task<void> encode(std::int64_t microbatch);
  [[nodiscard]] Task<void> encode_backward(std::int64_t microbatch);
  /// Adds what encoders made of the samples to the embeddings of their tokens.
  [[nodiscard]] Task<void> add_encoded(std::vector<std::int64_t> samples, Matrix& stream);
  [[nodiscard]] Task<Matrix> receive_encoded(int encoder, std::vector<std::int64_t> samples);
  void return_gradients(const std::vector<std::int64_t>& samples, const Matrix& gradient);

  [[nodiscard]] Range lane() const;
  /// Turns to a microbatch: the numbers, in the batch, of its samples on this rank. The last one may have none.
  [[nodiscard]] std::vector<std::int64_t> begin(std::int64_t microbatch);

  // ZeRO (rank_gradients.cpp)
  [[nodiscard]] Task<void> gather(const std::vector<Parameter*>& weights);
  [[nodiscard]] Task<void> release(const std::vector<Parameter*>& weights, bool with_gradients);
  [[nodiscard]] Task<void> reduce_over_copies(Parameter& parameter);
  [[nodiscard]] Task<void> reduce_over_replicas(Parameter& parameter);
  [[nodiscard]] Task<void> synchronise();
  [[nodiscard]] Task<void> sum_over_holders(Parameter& parameter);
  /// Squares of the gradients of the language model, then of each encoder, over all ranks, each value once.
  [[nodiscard]] Task<std::vector<double>> gradient_squares();
  [[nodiscard]] bool counts(const Parameter& parameter) const;
  /// By the norm of all gradients where there are encoders, as runtimes clip them.
  [[nodiscard]] double rate_of(const Parameter& parameter, const std::vector<double>& squares) const;
  [[nodiscard]] Task<void> step();

  const Job& job_;
  const JobRank& self_;
  const JobPipeline& pipeline_;
  const JobStage& stage_;
  const JobPart& part_;
  Misbehaviour misbehaviour_;
  Place place_;
  Copies copies_;         ///< of dense weights
  Copies expert_copies_;  ///< of experts
  std::deque<Parameter> parameters_;
  std::deque<EncoderProgram> encoders_;
  std::vector<Block> blocks_;  ///< chunk by chunk
  EmbeddingWeights embedding_;
  HeadWeights head_;
  std::vector<Parameter*> embedding_list_, head_list_;
  std::vector<Route> from_before_, to_before_, from_behind_, to_behind_;
  const std::map<std::string, Holders>* holders_ = nullptr;
  std::map<std::pair<int, std::int64_t>, KeptMicrobatch> in_flight_;  ///< by chunk and microbatch
  std::map<std::int64_t, std::vector<PutOffProduct>> put_off_;        ///< by microbatch
  std::int64_t most_in_flight_ = 0;
  Embeddings embeddings_;
  std::int64_t samples_judged_ = 0;
  double loss_ = 0;
};

}  // namespace tangram::execute
