// The fastest uniform plan on a fleet of one class, found by trying all of them. Goes in: a model and a level with one
// class. Comes out: its iteration time by the closed form of the design. Shares no code with the planner but the cost
// model and the slices: written out anew are the shapes, the degrees, links, the gradients that replicas exchange, the
// period and the tail.
//
// A uniform plan has R pipelines of S stages of equal size, all with the same degrees, ZeRO stage and recompute, and
// near-equal numbers of blocks (the remainder goes to the first stages, or to the last).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tangram/cost/stage.hpp"

namespace tangram::shipped {

struct UniformPlan {
  Nanoseconds time;
  std::string text;        ///< what it is, for messages
  std::int64_t tried = 0;  ///< plans that were priced
};

[[nodiscard]] std::optional<UniformPlan> fastest_uniform(const model::Model& model, const cluster::IslandLevel& level);

/// One stage as the closed form sees it, ns.
struct TimedStage {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t exposed = 0;  ///< gradient synchronisation that does not hide in the stage
  std::int64_t step = 0;
  std::int64_t most = 0;  ///< microbatches it can hold
};

/// t of a pipeline whose boundaries all have this latency and occupancy; none where no period lets every stage hold its
/// microbatches.
[[nodiscard]] std::optional<std::int64_t> pipeline_time(const std::vector<TimedStage>& stages, std::int64_t latency,
                                                        std::int64_t occupancy, std::int64_t microbatches);

}  // namespace tangram::shipped
