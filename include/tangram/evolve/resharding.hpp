// What a switch from one plan to another moves. Goes in: both plans, and the fleet if it is known. Comes out: bytes of
// parameters and optimizer state that GPUs lack, which host sends them to which, and how long that takes.
//
// A matrix is an interval of parameters: tensor parallelism gives every rank a piece of it, ZeRO a piece of that piece
// to every replica; experts are divided in their order. Intervals of 2 and 4 pieces nest as the columns of
// Megatron-LM's matrices do. Where runtimes flatten the optimizer state of a whole stage before they divide it, single
// matrices lie elsewhere, but the bytes are as many.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::evolve {

struct State {
  Bytes parameters;
  Bytes optimizer;
  [[nodiscard]] Bytes total() const { return parameters + optimizer; }
  State& operator+=(const State& other) {
    parameters += other.parameters;
    optimizer += other.optimizer;
    return *this;
  }
  bool operator==(const State&) const = default;
};

struct HostTransfer {
  std::string from;
  std::string to;
  State state;
  bool operator==(const HostTransfer&) const = default;
};

struct Resharding {
  State kept;                           ///< what the GPUs of the new plan hold already
  State within;                         ///< what another GPU of their host has
  State between;                        ///< what another host has
  State checkpoint;                     ///< what no GPU has that is left
  std::vector<HostTransfer> transfers;  ///< of `within` (from = to) and `between`, by (from, to)
  [[nodiscard]] Bytes moved() const { return within.total() + between.total(); }
};

/// GPUs of the old plan that are not in `fleet` send nothing; without a fleet all are still there. Both plans must be
/// of the same model.
[[nodiscard]] Resharding resharding(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                                    const cluster::Fleet* fleet);

/// All transfers at once, each host sending and receiving with its network, each pair over its link, both at
/// cost::kNetworkShare of their rate; inside a host over one GPU's link. What comes from a checkpoint is not in it.
/// Hosts that the fleet has not take no time.
[[nodiscard]] Nanoseconds resharding_time(const Resharding& resharding, const cluster::Fleet& fleet);

}  // namespace tangram::evolve
