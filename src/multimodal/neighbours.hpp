// The edges at each stage of a graph.
#pragma once

#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

struct Neighbours {
  std::vector<std::vector<int>> in;   ///< [stage] edges that lead to it, in their order
  std::vector<std::vector<int>> out;  ///< and those that leave it

  explicit Neighbours(const StageGraph& graph) : in(graph.stages.size()), out(graph.stages.size()) {
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      at(in, graph.edges[e].to).push_back(static_cast<int>(e));
      at(out, graph.edges[e].from).push_back(static_cast<int>(e));
    }
  }
};

}  // namespace tangram::multimodal
