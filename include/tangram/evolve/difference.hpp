// Two launch plans side by side. Goes in: an old and a new plan. Comes out: which stage became which, and what every
// GPU has to do with that. Bodies are compared; how the plans were found is not.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::evolve {

/// What a process notices of a plan: the layers it holds and how they are divided. Which of several equal pipelines it
/// belongs to, and its coordinates among the ranks of its stage, make no other process of it.
struct Role {
  std::vector<model::BlockRange> chunks;
  cost::Degrees degrees;
  std::vector<cost::EncoderLayout> encoders = {};  ///< colocated ones
  auto operator<=>(const Role&) const = default;
};

using Gpu = std::pair<std::string, int>;  ///< host, number on the host

[[nodiscard]] std::map<Gpu, Role> roles_of(const plan::LaunchPlan& plan);

struct GpuCounts {
  int same = 0;     ///< the role it had
  int changed = 0;  ///< another role
  int joined = 0;   ///< in the new plan alone
  int left = 0;     ///< in the old plan alone
  /// What a switch is measured by: GPUs of the new plan that do not simply go on.
  [[nodiscard]] int moved() const { return changed + joined; }
  bool operator==(const GpuCounts&) const = default;
};

[[nodiscard]] GpuCounts count_roles(const std::map<Gpu, Role>& before, const std::map<Gpu, Role>& after);

/// A stage of the new plan and the one of the old plan that it came from: the one that shares most GPUs with it, of
/// those the one that shares most layers. Each old stage is one new stage at most.
struct StagePair {
  int before = -1;  ///< stage id; -1: the stage is new
  int after = -1;   ///< -1: the stage is gone
  bool layers = false;
  bool gpus = false;    ///< other GPUs, or in another order
  int joined = 0;       ///< GPUs that the old stage has not
  bool inside = false;  ///< degrees, ZeRO, recompute, samples, or how many parts it has
  [[nodiscard]] bool same() const { return before >= 0 && after >= 0 && !layers && !gpus && !inside; }
  bool operator==(const StagePair&) const = default;
};

struct Difference {
  bool same_body = false;         ///< byte for byte, predictions included
  bool same_model = false;        ///< the same parameters and optimizer, whatever they are trained on
  std::string other_job;          ///< job_change(before, after)
  bool same_batching = false;     ///< pipelines, their microbatch and shares
  bool same_schedule = false;     ///< and groups of microbatches where chunks are interleaved, turns of encoders
  std::vector<StagePair> stages;  ///< in the order of the new plan, then those that are gone
  GpuCounts gpus;
  /// Nothing that a process notices differs; predictions may.
  [[nodiscard]] bool same_structure() const;
};

[[nodiscard]] bool same_model(const model::Model& a, const model::Model& b);

/// What the second job has and the first one not, as people are told: "global batch 128, not 64; precision bf16, not
/// fp16". Techniques that a plan may use, and a microbatch that it has to have, are no part of it. Empty: the same job.
[[nodiscard]] std::string job_change(const model::Model& before, const model::Model& after);

[[nodiscard]] Difference difference(const plan::LaunchPlan& before, const plan::LaunchPlan& after);

}  // namespace tangram::evolve
