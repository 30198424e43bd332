// What a block costs at least under every strategy. Goes in: model, islands. Comes out: for each class of GPUs a list
// of block rates; every stage that cost::stage_cost prices at degrees that parallelizer/degrees.hpp lists runs each of
// its blocks at one of them or slower, whatever its shape, ZeRO stage and recompute are.
//
// Times come from cost::block_time on the smallest shape that has these degrees: larger ones have the same groups of
// tp, cp and ep ranks, over links that are no better. Times grow with the samples of a replica, so that a block rate
// stands for a range of them; and no kernel or exchange gets cheaper per sample than it is for very many.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/model/model.hpp"
#include "tangram/relax/bound_tuning.hpp"

namespace tangram::relax {

/// A number of samples of one replica in a microbatch, from `samples` to `last`, at some degrees.
struct BlockRate {
  std::size_t item = 0;  ///< block type; behind the last one the head
  double gpus = 1;       ///< of a replica: tp x cp
  std::int64_t samples = 1;
  std::int64_t last = 1;
  double forward = 0;        ///< seconds of `samples`, no more than those of any up to `last`
  double backward = 0;       ///< the same, without recompute
  double forward_limit = 0;  ///< seconds a sample, no more than those of any number of samples
  double backward_limit = 0;
  double dense_sync = 0;   ///< seconds to move the block's gradients in and out of the nodes that hold it: all, and
  double expert_sync = 0;  ///< those of experts
  double dense_span = 1;   ///< GPUs that share one network link, or one copy if that takes more
  double expert_span = 1;
  double update = 0;  ///< seconds of the optimizer step of a GPU that shards nothing
  double held = 0;    ///< bytes of the block's parameters, gradients and optimizer state, over all GPUs of a copy
  double kept = 0;    ///< bytes of a GPU's activations at least, however much is recomputed
  double room = 0;    ///< bytes of a GPU beside what the block needs while it runs; both 0: not known

  [[nodiscard]] double total() const { return forward + backward; }
  /// GPU-seconds of one sample, with `share` of backward taken off.
  [[nodiscard]] double gpu_seconds(double share, double last_samples) const;
  /// Seconds of gradients that cross the network where `copies` replicas of the block run, at any ZeRO stage.
  [[nodiscard]] double sync(double copies) const { return crossing(gpus * copies); }
  /// The same where so many GPUs hold the block.
  [[nodiscard]] double crossing(double holders) const;
};

/// By class of the finest level. Where `profiles` know a block its measured times may be of any degrees: one block rate
/// says how few GPU-seconds they are, and that all GPUs of the class may share them.
[[nodiscard]] std::vector<std::vector<BlockRate>> block_rates_of(const model::Model& model,
                                                                 const cluster::IslandHierarchy& hierarchy,
                                                                 const cost::ProfileSet* profiles,
                                                                 const BoundTuning& tuning);

/// How often a sample meets each item.
[[nodiscard]] std::vector<double> item_counts(const model::Model& model);

}  // namespace tangram::relax
