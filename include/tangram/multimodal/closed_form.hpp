// The iteration time of a graph of stages under 1F1B, by formula (src/multimodal/README.md). Goes in: a graph. Comes
// out: its period, its time, and how many microbatches its stages hold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

struct ClosedForm {
  std::int64_t period = 0;              ///< the smallest P that is feasible, ns
  std::int64_t latency = 0;             ///< of one microbatch, until the last gradient is there, ns
  std::int64_t time = 0;                ///< of the iteration, ns
  std::vector<std::int64_t> in_flight;  ///< n of each stage, not capped by M; of frozen ones the prefetch depth
};

/// Of a graph that passes check(). nullopt: a boundary has no price, or memory holds the microbatches at no period. For
/// a chain it is chain::evaluate(). O((stages + edges) log P).
[[nodiscard]] std::optional<ClosedForm> closed_form(const StageGraph& graph);

}  // namespace tangram::multimodal
