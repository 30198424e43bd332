// How one stage is parallelized inside. Values only.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "tangram/model/model.hpp"

namespace tangram::cost {

using model::RecomputeMode;

/// Degrees inside one stage. Attention and dense parts use tp x cp x dp = all GPUs of the stage. Experts use
/// etp x ep x edp = all GPUs, where ep shards experts over the dp x cp (x tp / etp) ranks.
///
/// ZeRO shards over all of dp x cp, or inside dp_replicate groups that each hold everything (hybrid sharding, HSDP:
/// Zhao et al., PyTorch FSDP, VLDB 2023, section 3.2.2). A group has dp_shard() x cp x tp ranks that are neighbours. Of
/// an expert's replicas those in one group share its shards: edp / expert_replicate().
struct Degrees {
  int tp = 1;
  int cp = 1;
  int dp = 1;
  int ep = 1;
  int etp = 1;
  bool sequence_parallel = false;  ///< only with tp > 1
  int dp_replicate = 1;            ///< divides dp; more than 1 only under ZeRO

  [[nodiscard]] int gpus() const { return tp * cp * dp; }
  [[nodiscard]] int edp() const { return gpus() / (ep * etp); }
  /// Of dp, the ranks that ZeRO shards over.
  [[nodiscard]] int dp_shard() const { return dp / dp_replicate; }
  /// Copies of what ZeRO shards of an expert: where experts are spread over more than a group, each replica is one.
  [[nodiscard]] int expert_replicate() const { return std::min(dp_replicate, edp()); }
  /// Of so many samples, what the fullest of the dp replicas gets: the first samples % dp of them get one more.
  [[nodiscard]] std::int64_t most_samples(std::int64_t samples) const { return samples / dp + (samples % dp != 0); }
  /// Of so many samples, those of the replicas in front of this one: replica d gets [samples_before(d), ... (d + 1)).
  [[nodiscard]] std::int64_t samples_before(std::int64_t replica, std::int64_t samples) const {
    return samples / dp * replica + std::min(replica, samples % dp);
  }
  auto operator<=>(const Degrees&) const = default;
};

/// What trades time for memory in one block.
struct BlockPolicy {
  int zero = 0;  ///< 0..3 over dp_shard x cp (experts: over edp / expert_replicate)
  RecomputeMode recompute = RecomputeMode::kNone;
  auto operator<=>(const BlockPolicy&) const = default;
};

/// Blocks in a row that are treated alike.
struct BlockRun {
  int blocks = 0;
  BlockPolicy policy;
  auto operator<=>(const BlockRun&) const = default;
};

/// What trades time for memory at fixed degrees. Most stages treat their blocks alike, or recompute some of them in
/// full; where they do not, `runs` tells of every block.
struct MemoryPolicy {
  int zero = 0;  ///< 0..3, as of a block; beside `runs` of embedding and head alone
  RecomputeMode recompute = RecomputeMode::kNone;
  int recompute_layers = 0;  ///< blocks recomputed in full, from the stage's first; kFull only
  std::vector<BlockRun>
      runs{};  // NOLINT(readability-redundant-member-init): g++ and clang warn of every policy without
  auto operator<=>(const MemoryPolicy&) const = default;

  [[nodiscard]] bool is_mixed() const { return !runs.empty(); }
  /// Whether ZeRO shards anything, under any of its stages.
  [[nodiscard]] bool shards() const {
    return zero > 0 || std::any_of(runs.begin(), runs.end(), [](const BlockRun& run) { return run.policy.zero > 0; });
  }
};

/// A policy in runs, for a stage of so many blocks: one or two, or those it has.
[[nodiscard]] std::vector<BlockRun> runs_of(const MemoryPolicy& policy, int blocks);
/// For a stage of so many blocks: the last run gives or takes what other runs leave.
[[nodiscard]] MemoryPolicy fitted(MemoryPolicy policy, int blocks);
/// The shortest way to say it: `runs` only where the other members cannot. `zero` is of embedding and head.
[[nodiscard]] MemoryPolicy policy_of_runs(int zero, const std::vector<BlockRun>& runs);

struct Strategy {
  Degrees degrees;
  MemoryPolicy policy;
  auto operator<=>(const Strategy&) const = default;
};

}  // namespace tangram::cost
