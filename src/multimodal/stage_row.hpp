// Stages in a row.
#pragma once

#include <span>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

/// Adds them to a graph, `hops` behind each but the last.
inline void append_row(StageGraph& graph, std::span<const Stage> stages, std::span<const Price> hops) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const int number = static_cast<int>(graph.stages.size());
    graph.stages.push_back(stages[s]);
    if (s > 0) graph.edges.push_back({number - 1, number, hops[s - 1]});
  }
}

}  // namespace tangram::multimodal
