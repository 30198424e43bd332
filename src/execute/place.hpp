// What a rank knows of where it stands: its coordinates, its groups, its share of a microbatch.
#pragma once

#include "communicator.hpp"
#include "job.hpp"

namespace tangram::execute {

/// Of a sequence: what the rank with these coordinates holds between replicas.
[[nodiscard]] inline Range shard_range(int positions, const cost::Degrees& degrees, int tp, int cp) {
  const Range context = piece(positions, cp, degrees.cp);
  const Range own = piece(context.length(), tp, degrees.tp);
  return {context.first + own.first, context.first + own.last};
}

struct Place {
  Communicator& ranks;
  int rank = 0;  ///< of the job
  cost::Degrees degrees = {};
  int tp = 0, cp = 0, ep = 0, etp = 0;
  Group* tensor = nullptr;   ///< tp ranks of the same samples and positions
  Group* context = nullptr;  ///< cp ranks of the same samples and heads
  Group* experts = nullptr;  ///< etp x ep ranks that hold all experts once, etp fastest
  int samples = 1;           ///< of the microbatch at work, on this rank
  int positions = 1;         ///< of the whole sequence
  [[nodiscard]] bool sequence_parallel() const { return degrees.sequence_parallel && degrees.tp > 1; }
  [[nodiscard]] Range context_range() const { return piece(positions, cp, degrees.cp); }
  /// Of the context range: what the rank sends and receives, and with sequence parallelism what it holds.
  [[nodiscard]] Range tensor_range() const { return piece(context_range().length(), tp, degrees.tp); }
  [[nodiscard]] Range shard_range() const { return execute::shard_range(positions, degrees, tp, cp); }

  // Around what is split over tp (arXiv 2205.05198, section 4.2: g and g-bar, or f and f-bar without sequence
  // parallelism). enter: every rank sees the activation of the whole context range. leave: sums what each has of it.
  [[nodiscard]] Task<Matrix> enter(Matrix activation) const;
  [[nodiscard]] Task<Matrix> enter_backward(Matrix gradient) const;
  [[nodiscard]] Task<Matrix> leave(Matrix partial) const;
  [[nodiscard]] Task<Matrix> leave_backward(Matrix gradient) const;

  // To and from positions that no other rank of the replica holds; nothing to do with sequence parallelism.
  [[nodiscard]] Matrix to_shard(const Matrix& activation) const;
  [[nodiscard]] Task<Matrix> from_shard(Matrix shard) const;
};

}  // namespace tangram::execute
