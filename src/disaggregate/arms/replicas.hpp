// The whole model on every GPU that holds it, each with micro-batches of its own size.
#pragma once

#include <span>
#include <vector>

#include "tangram/disaggregate/compare.hpp"

namespace tangram::disaggregate {

struct ReplicaPlan {
  struct Part {
    int on = 0;
    std::size_t batch = 0;  ///< its size
    int gpus = 0;
  };
  std::vector<Part> parts;  ///< by class that takes part; none: the model fits nowhere
  double rate = 0;          ///< requests a second through one round, of all
  int requests = 0;         ///< in memory, of all
};

/// The sizes with the highest rate that terms allow: a knapsack over the classes.
[[nodiscard]] ReplicaPlan plan_replicas(std::span<const Batch> batches, const Terms& terms);
/// Of one GPU alone.
[[nodiscard]] ReplicaPlan plan_one_gpu(std::span<const Batch> batches, const Terms& terms);

/// The rate of the same plan on batches whose kernels take other times.
[[nodiscard]] double rate_of(std::span<const Batch> batches, const ReplicaPlan& plan);

/// A batch as one GPU runs it, one micro-batch at a time.
[[nodiscard]] Usage alone_on(const Problem& problem, int on);

}  // namespace tangram::disaggregate
