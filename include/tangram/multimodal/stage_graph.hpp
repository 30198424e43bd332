// The stages of a multimodal model in plain numbers: encoders, the language model behind them, generators behind that,
// each module cut into stages of its own. Goes in: what stages take, and the boundaries between them. Comes out:
// graphs for closed_form.hpp and timetable.hpp. Knows no models and no GPUs, so that it can be tested against a
// brute force.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/prune/frontier.hpp"

namespace tangram::multimodal {

using chain::Price;
using prune::Candidate;

/// One stage of one module, for its share of a microbatch.
struct Stage {
  Candidate plan;
  /// 0: it has a backward pass. More: nothing in it or in front of it is trained, so that there is none (T = F and
  /// A = T), and it may begin so many forward passes before the first of them is read. It holds `prefetch` outputs.
  std::int64_t prefetch = 0;

  [[nodiscard]] bool is_frozen() const { return prefetch > 0; }
  [[nodiscard]] std::int64_t backward() const { return plan.T - plan.F; }  ///< ns
};

/// From a stage to one that reads what it makes.
struct Edge {
  int from = 0;
  int to = 0;
  Price price;
};

/// What one super-lane runs under 1F1B. A super-lane is the least part of the fleet that all modules divide; plans have
/// several that are alike.
struct StageGraph {
  std::vector<Stage> stages;
  std::vector<Edge> edges;  ///< each leads to a later stage
  std::int64_t microbatches = 1;
  /// Warm-ups are those of graph_warmups(), as Megatron-LM has them. Without it, stages hold as many microbatches as
  /// hide the latency of boundaries.
  bool graph_warmup = false;
  /// Stages stop for what they hand over, one boundary after the other. Asks for graph warm-ups.
  bool blocking_transfers = false;
};

/// What a graph must have so that everything else may take it as it is: a stage; F <= T <= A and nothing negative; no
/// backward pass in front of or in frozen stages; edges between stages that exist, each pair once and each to a later
/// one; a microbatch. Errors name the element ("/stages/3/T") and what was expected.
[[nodiscard]] Expected<void> check(const StageGraph& graph);

/// Forward passes of each stage before its first backward pass, as in Megatron-LM (megatron/core/pipeline_parallel/
/// schedules.py, d98e8a64): stages of the longest path, less 1, less those in front of the stage. O(stages + edges).
[[nodiscard]] std::vector<std::int64_t> graph_warmups(const StageGraph& graph);

/// More than any number of microbatches, and than any time.
inline constexpr std::int64_t kUnlimited = INT64_MAX / 4;

/// How many microbatches a stage may have in flight.
struct InFlight {
  std::int64_t least = 1;
  std::int64_t most = kUnlimited;  ///< less than `least`: its memory does not hold what it must
};

/// What memory holds, and where the runtime has graph warm-ups (`warmup`: the stage's) exactly what they bring. A stage
/// that holds all microbatches waits for none of them to come back: it may have any number in flight.
[[nodiscard]] InFlight in_flight_of(const Stage& stage, std::int64_t microbatches,
                                    std::optional<std::int64_t> warmup = std::nullopt);

}  // namespace tangram::multimodal
