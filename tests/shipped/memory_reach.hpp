// Does any chain of stages hold a model at all? A search for memory alone, on the cost model and nothing else of the
// planner: no frontiers, no pruning, no prices, no parallelizer.
//
// A stage that is the n-th from the end holds min(M, n) microbatches (1F1B without extras, the least any schedule
// needs). Stages are filled from the last to the first: of all ways to run a stage with n in flight the one that takes
// the most blocks serves best, because what is left, [0, first), is then a part of what every other way leaves. So it
// is enough to remember, for the GPUs used so far and the number of stages, how few blocks can be left.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "tangram/cost/stage.hpp"

namespace tangram::shipped {

/// Ways to run one stage: every tp (divisors of the GPUs of a member), cp (powers of two), dp, ep, expert-tp and
/// sequence parallelism that cost::unit_costs accepts, for some layers at least.
[[nodiscard]] std::vector<cost::UnitCosts> ways_to_run(const model::Model& model, const cluster::DeviceShape& shape,
                                                       int samples);

/// Sizes of a stage in a class: divisors of the GPUs of a member, and any number of whole members.
[[nodiscard]] std::vector<int> stage_sizes(const cluster::IslandClass& island_class);

/// Microbatches worth trying for memory: the divisors of the batch up to `gpus`. Larger ones allow no further dp, and
/// hold more.
[[nodiscard]] std::vector<std::int64_t> microbatches(const model::Job& job, int gpus);

/// For one microbatch size: how far a stage that ends before block `last` can reach.
class StageReach {
 public:
  StageReach(const model::Model& model, const std::vector<cluster::IslandClass>& classes, std::int64_t microbatch);

  /// The smallest first block such that [first, last) fits with `in_flight` microbatches on `gpus` GPUs of the class
  /// under some degrees, ZeRO stage and recompute mode; `last` when nothing does.
  [[nodiscard]] int first_block(std::size_t island_class, int gpus, std::int64_t in_flight, int last);

  [[nodiscard]] std::int64_t microbatches() const { return model_.job.global_batch / microbatch_; }

 private:
  const std::vector<cost::UnitCosts>& ways(std::size_t island_class, int gpus);
  [[nodiscard]] int extend(const cost::UnitCosts& units, int zero, Bytes usable, std::int64_t in_flight, int last,
                           int best) const;

  const model::Model& model_;
  const std::vector<cluster::IslandClass>& classes_;
  std::int64_t microbatch_;
  std::map<std::pair<std::size_t, int>, std::vector<cost::UnitCosts>> ways_;
  std::map<std::tuple<std::size_t, int, std::int64_t, int>, int> known_;
};

struct ChainFound {
  std::int64_t microbatch = 0;
  int stages = 0;
};

/// Chains of equally large stages on one class, for every size, number of stages and microbatch; each stage may choose
/// its own split of the blocks and its own strategy, so that every uniform plan is among them.
[[nodiscard]] std::optional<ChainFound> uniform_chain(const model::Model& model,
                                                      const cluster::IslandClass& island_class);

/// The same on the whole fleet, every GPU taken for the one with the least memory.
[[nodiscard]] cluster::IslandClass weakest_of(const cluster::IslandLevel& level);

/// Any chain over all classes with any mixture of stage sizes. Exact in the order of stages and in what they hold.
[[nodiscard]] std::optional<ChainFound> mixed_chain(const model::Model& model, const cluster::IslandLevel& level);

/// Parameters, gradients and optimizer state of blocks [0, last), what comes before them included, without overhead.
[[nodiscard]] Bytes least_state(const model::Model& model, int last);

}  // namespace tangram::shipped
