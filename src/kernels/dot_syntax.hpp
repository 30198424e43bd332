// The graph language of Graphviz, as far as dumps of graphs use it. Goes in: text. Comes out: nodes with their labels,
// and edges between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::kernels {

struct DotNode {
  std::string id;
  std::string label;  ///< as written, with its escapes
  int line = 0;       ///< of the id, from 1
};

struct DotEdge {
  std::string from;
  std::string to;
  int line = 0;
};

struct DotGraph {
  std::vector<DotNode> nodes;
  std::vector<DotEdge> edges;
};

[[nodiscard]] Expected<DotGraph> read_dot(std::string_view text, const std::string& file);

}  // namespace tangram::kernels
