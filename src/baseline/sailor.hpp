// The inner steps of Sailor's planner (Strati et al., SOSP 2025), each by itself so that tests can hold them against
// published runs. Goes in: profiles. Comes out: how much tensor parallelism a type needs, whether a stage fits, and the
// time of a plan.
//
//   T = (M-1) max_s (t_s + send_(s-1) + send_s) + sum t_s + 2 sum send_s + max_s sync_s + update
//   M = ceil(batch / (b dp)),   t_s the slowest replica's forward and backward of b samples,
//   send_s to the next stage: activations there, gradients back
//   sync_s: a ring over dp in buckets of 500 MB, each 2 (dp-1) messages of bucket / dp, of the unsharded stage
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

/// `count` replicas of one kind; tp is the kind's at that stage.
struct SailorShare {
  int kind = 0;
  int tp = 1;
  int count = 0;
};

struct SailorStage {
  int first = 0;
  int last = 0;
  std::vector<SailorShare> shares;
};

class Sailor {
 public:
  Sailor(const PlannerInput& input, Mode mode) : input_(input), mode_(mode) {}

  /// The least tp with which a stage fits that `behind` others follow; 0: none.
  [[nodiscard]] int least_tp(int kind, std::int64_t samples, int first, int last, int behind) const;
  /// tp is doubled as long as each step makes the stage at least 1.5 times as fast.
  [[nodiscard]] int scaling_tp(int kind, std::int64_t samples, int first, int last) const;
  [[nodiscard]] bool fits(int kind, int tp, std::int64_t samples, int first, int last, int behind) const;

  [[nodiscard]] double compute(const SailorStage& stage, std::int64_t samples) const;
  [[nodiscard]] double send(const SailorStage& from, const SailorStage& to, std::int64_t samples) const;
  [[nodiscard]] double sync(const SailorStage& stage, int dp) const;
  /// Counts for a pipeline of one stage alone, and there of every unit as much as of the whole model.
  [[nodiscard]] double update(const SailorStage& stage, std::int64_t samples) const;
  /// Of a stage by itself: what its choice goes by.
  [[nodiscard]] double alone(const SailorStage& stage, std::int64_t samples, int dp) const;
  [[nodiscard]] double iteration(const std::vector<SailorStage>& stages, std::int64_t samples, int dp) const;

 private:
  [[nodiscard]] std::vector<int> tensor_degrees() const;

  const PlannerInput& input_;
  Mode mode_;
};

[[nodiscard]] std::int64_t sailor_microbatches(std::int64_t batch, std::int64_t samples, int dp);

}  // namespace tangram::baseline
