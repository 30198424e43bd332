#include "node_assignment.hpp"

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::baseline {

namespace {

/// Free GPUs of each kind, node by node.
class FreeGpus {
 public:
  explicit FreeGpus(const PlannerInput& input) {
    for (const GpuKind& kind : input.kinds) free_.push_back(kind.nodes);
  }

  std::optional<std::vector<NodeIndex>> take(const Replica& replica) {
    auto& nodes = at(free_, replica.kind);
    const auto whole = std::ranges::find_if(nodes, [&](const auto& node) { return node.second >= replica.tp; });
    std::vector<NodeIndex> gpus;
    auto node = whole == nodes.end() ? nodes.begin() : whole;
    for (; node != nodes.end() && static_cast<int>(gpus.size()) < replica.tp; ++node) {
      while (node->second > 0 && static_cast<int>(gpus.size()) < replica.tp) {
        gpus.push_back(static_cast<NodeIndex>(node->first));
        --node->second;
      }
    }
    if (static_cast<int>(gpus.size()) < replica.tp) return std::nullopt;
    return gpus;
  }

 private:
  std::vector<std::vector<std::pair<std::size_t, int>>> free_;
};

}  // namespace

std::optional<std::vector<std::vector<StageNodes>>> assign_nodes(const Draft& draft, const PlannerInput& input) {
  FreeGpus free_gpus(input);
  std::vector<std::vector<StageNodes>> nodes(draft.pipelines.size());
  std::size_t depths = 0;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    nodes[p].resize(draft.pipelines[p].stages.size());
    depths = std::max(depths, nodes[p].size());
  }
  for (std::size_t depth = 0; depth < depths; ++depth) {
    for (std::size_t p = 0; p < nodes.size(); ++p) {
      if (depth >= nodes[p].size()) continue;
      for (const Replica& replica : draft.pipelines[p].stages[depth].replicas) {
        auto gpus = replica.samples > 0 ? free_gpus.take(replica) : std::vector<NodeIndex>{};
        if (!gpus) return std::nullopt;
        nodes[p][depth].push_back(std::move(*gpus));
      }
    }
  }
  return nodes;
}

}  // namespace tangram::baseline
