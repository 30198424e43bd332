// When the passes of a graph of stages run. Goes in: a graph, and how many microbatches its stages hold. Comes out:
// when each stage is done, and the iteration time, pass by pass. Shares nothing with the closed form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

/// [stage][microbatch] passes of this microbatch, over those of the mean one. Empty, or empty for a stage: alike.
using Loads = std::vector<std::vector<double>>;

/// [stage] when its last pass ends, ns. Every pass runs in the order of 1F1B, as early as its stage and what it reads
/// allow, and a boundary carries one transfer after the other in each direction; where transfers block, boundaries of a
/// stage take their turns in the order of the edges, and each hands over when both of its stages stop for it. No pass
/// begins before `start`. nullopt: stages wait for each other for ever. `in_flight`: forward passes of a stage before
/// its first backward pass, that one included; of frozen stages it means nothing. O(stages * edges * M).
[[nodiscard]] std::optional<std::vector<std::int64_t>> ends_of(const StageGraph& graph,
                                                               std::span<const std::int64_t> in_flight,
                                                               std::int64_t start = 0, const Loads& loads = {});

/// Iteration time, ns: gradients are synchronised (A - T) where a stage's last pass has ended, and all step together
/// when that is done.
[[nodiscard]] std::optional<std::int64_t> timetable(const StageGraph& graph, std::span<const std::int64_t> in_flight,
                                                    const Loads& loads = {});

}  // namespace tangram::multimodal
