// A small mixed fleet, a small model, and plans on them, for the tests of the plan module.
//
//   class A  island 0  [A x8 a0]==[A x8 a1]              members of 8, NVLink inside
//   class B  island 1  [B x4 b0]==[B x4 b1]              members of 4
//            island 2  [B x4 b2]==[B x4 b3]
//   class C  island 3  [C x2 b3]                         the other two GPUs of host b3, numbered 4 and 5
//
// Costs come from the cost module; in-flight counts are those the largest T and occupancy allow as period.
#pragma once

#include <vector>

#include "tangram/compose/composition.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::plan::example {

struct World {
  cluster::Fleet fleet;
  cluster::IslandLevel level;
  model::Model model;
};

/// 8 blocks: 4 dense, 4 of experts; global batch of 32 samples of 1024 tokens.
[[nodiscard]] World make_world();

struct PartSpec {
  int island_class = 0;
  int gpus = 1;
  int samples = 1;
  cost::Strategy strategy;
};

struct StageSpec {
  int last = 0;  ///< first is the last of the stage before
  std::vector<PartSpec> parts;
};

[[nodiscard]] cost::Strategy strategy(int tp, int cp, int dp, int ep = 1, int etp = 1, int zero = 0);

/// Also sets the model's global batch to replicas x microbatch x microbatches.
[[nodiscard]] compose::Composition make_composition(World& world, int replicas, std::int64_t microbatch,
                                                    std::int64_t microbatches, const std::vector<StageSpec>& stages);

/// Assembled, with verdicts and with the closed form as the predicted iteration.
[[nodiscard]] LaunchPlan make_plan(World& world, const compose::Composition& composition);

/// Three stages on classes A, B and A+C: dp 4 -> 2 -> (4 + 1), a mixed last stage, 8 microbatches of 4.
[[nodiscard]] LaunchPlan good_plan(World& world);

/// Four stages of two interleaved chunks of a block each for Megatron-LM, on a0 and a1: tp 2 with sequence parallelism,
/// dp 2, ZeRO-1; 8 microbatches of 4 in groups of 4.
[[nodiscard]] LaunchPlan interleaved_plan();

}  // namespace tangram::plan::example
