// In which order processes are started. Goes in: a plan. Comes out: the rank that each of its GPUs gets in a runtime,
// and what every host has to start.
#pragma once

#include <string>
#include <vector>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

/// What runs on one host, by local rank.
struct HostRanks {
  std::string host;
  std::vector<int> gpus;   ///< as numbered on the host
  std::vector<int> ranks;  ///< in the order of the runtime, ascending
};

struct LaunchOrder {
  std::vector<int> plan_rank;    ///< [rank of the runtime] -> rank of the plan
  std::vector<HostRanks> hosts;  ///< by their lowest rank

  /// Every host has consecutive ranks: launchers that number processes host by host give them the right ones.
  [[nodiscard]] bool host_by_host() const;
};

/// Ranks as the plan numbers them: pipeline by pipeline, stage by stage.
[[nodiscard]] LaunchOrder plan_order(const LaunchPlan& plan);

/// Ranks as Megatron-LM numbers them (tp-cp-ep-dp-pp, megatron/core/parallel_state.py): stage by stage, where replicas
/// of a pipeline are one stage with more data parallelism.
[[nodiscard]] LaunchOrder stage_order(const LaunchPlan& plan);

}  // namespace tangram::plan
