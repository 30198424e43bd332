#include "tangram/cost/strategy.hpp"

#include <algorithm>

namespace tangram::cost {
namespace {

/// Equal neighbours together.
std::vector<BlockRun> joined(const std::vector<BlockRun>& runs) {
  std::vector<BlockRun> out;
  for (const BlockRun& run : runs) {
    if (run.blocks == 0) continue;
    if (!out.empty() && out.back().policy == run.policy) {
      out.back().blocks += run.blocks;
    } else {
      out.push_back(run);
    }
  }
  return out;
}

}  // namespace

std::vector<BlockRun> runs_of(const MemoryPolicy& policy, int blocks) {
  if (policy.is_mixed()) return policy.runs;
  const bool full = policy.recompute == RecomputeMode::kFull;
  const int first = full ? std::min(policy.recompute_layers, blocks) : blocks;
  return joined({{first, {policy.zero, policy.recompute}}, {blocks - first, {policy.zero, RecomputeMode::kNone}}});
}

MemoryPolicy fitted(MemoryPolicy policy, int blocks) {
  policy.recompute_layers = std::min(policy.recompute_layers, blocks);
  if (!policy.is_mixed()) return policy;
  int left = blocks;
  for (BlockRun& run : policy.runs) {
    run.blocks = std::min(run.blocks, left);
    left -= run.blocks;
  }
  policy.runs.back().blocks += left;
  return policy_of_runs(policy.zero, policy.runs);
}

MemoryPolicy policy_of_runs(int zero, const std::vector<BlockRun>& runs) {
  MemoryPolicy policy;
  policy.zero = zero;
  policy.runs = joined(runs);
  if (policy.runs.empty()) return policy;
  const BlockRun& first = policy.runs.front();
  const BlockRun& last = policy.runs.back();
  const bool full_at_first = policy.runs.size() == 2 && first.policy.recompute == RecomputeMode::kFull &&
                             last.policy.recompute == RecomputeMode::kNone;
  const bool alike = policy.runs.size() == 1 || full_at_first;
  if (!alike || first.policy.zero != zero || last.policy.zero != zero) return policy;
  policy.recompute = first.policy.recompute;
  if (policy.recompute == RecomputeMode::kFull) policy.recompute_layers = first.blocks;
  policy.runs.clear();
  return policy;
}

}  // namespace tangram::cost
