// Between colocated encoders and the language model of one pipeline: which lane encodes a sample, which ranks of the
// first stage read it, and which positions each of them has. Goes in: a job, and how an encoder is laid out. Comes out:
// both ends of every message, the same for all who ask.
#pragma once

#include <cstdint>
#include <vector>

#include "job.hpp"

namespace tangram::execute {

/// Samples of the batch, from the first on.
struct SampleRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] bool holds(std::int64_t sample) const { return first <= sample && sample < last; }
};

/// Of one sample, what a rank holds.
struct Piece {
  int rank = 0;  ///< of the job
  Range positions;
};

class Handover {
 public:
  /// `tp`: of the encoder's lanes, which are the ranks of all stages in their order.
  Handover(const Job& job, const JobPipeline& pipeline, int tp);

  [[nodiscard]] int lanes() const { return static_cast<int>(lanes_.size()); }
  [[nodiscard]] const std::vector<int>& ranks_of(int lane) const { return at(lanes_, lane); }
  /// -1: the rank is in none.
  [[nodiscard]] int lane_of(int rank) const;
  /// What is encoded before the language model has its turn: the microbatch, or the pipeline's share of the batch.
  [[nodiscard]] SampleRange round(std::int64_t microbatch) const;
  /// Of a round, what the lane encodes: equal shares one behind the other.
  [[nodiscard]] SampleRange share(const SampleRange& round, int lane) const;

  /// Ranks of the lane that encodes the sample.
  [[nodiscard]] std::vector<Piece> makers(std::int64_t sample) const;
  /// Ranks of the replica of the first stage that reads it.
  [[nodiscard]] std::vector<Piece> readers(std::int64_t sample) const;

 private:
  [[nodiscard]] std::int64_t microbatch_of(std::int64_t sample) const {
    return (sample - pipeline_.first_sample) / pipeline_.microbatch;
  }

  const Job& job_;
  const JobPipeline& pipeline_;
  std::vector<std::vector<int>> lanes_;
};

/// What two pieces of a sample share.
[[nodiscard]] Range common(const Range& a, const Range& b);

/// Rows of a shard that begins at position `first`: those of some positions of the `index`-th of its samples.
[[nodiscard]] Matrix rows_of(const Matrix& shard, int index, const Range& held, const Range& positions);
void put_rows(Matrix& shard, int index, const Range& held, const Range& positions, const Matrix& rows);

}  // namespace tangram::execute
