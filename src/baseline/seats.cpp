#include "seats.hpp"

#include <algorithm>

namespace tangram::baseline {

namespace {

/// Free GPUs of each kind, node by node.
class Room {
 public:
  explicit Room(const PlannerInput& input) {
    for (const GpuKind& kind : input.kinds) free_.push_back(kind.nodes);
  }

  std::optional<std::vector<Chair>> take(const Replica& replica) {
    auto& nodes = free_[static_cast<std::size_t>(replica.kind)];
    const auto whole = std::ranges::find_if(nodes, [&](const auto& node) { return node.second >= replica.tp; });
    std::vector<Chair> chairs;
    auto node = whole == nodes.end() ? nodes.begin() : whole;
    for (; node != nodes.end() && static_cast<int>(chairs.size()) < replica.tp; ++node) {
      while (node->second > 0 && static_cast<int>(chairs.size()) < replica.tp) {
        chairs.push_back(static_cast<Chair>(node->first));
        --node->second;
      }
    }
    if (static_cast<int>(chairs.size()) < replica.tp) return std::nullopt;
    return chairs;
  }

 private:
  std::vector<std::vector<std::pair<std::size_t, int>>> free_;
};

}  // namespace

std::optional<std::vector<std::vector<StageSeats>>> seat_drafts(const Draft& draft, const PlannerInput& input) {
  Room room(input);
  std::vector<std::vector<StageSeats>> seats(draft.pipelines.size());
  std::size_t depths = 0;
  for (std::size_t p = 0; p < seats.size(); ++p) {
    seats[p].resize(draft.pipelines[p].stages.size());
    depths = std::max(depths, seats[p].size());
  }
  for (std::size_t depth = 0; depth < depths; ++depth) {
    for (std::size_t p = 0; p < seats.size(); ++p) {
      if (depth >= seats[p].size()) continue;
      for (const Replica& replica : draft.pipelines[p].stages[depth].replicas) {
        auto chairs = replica.samples > 0 ? room.take(replica) : std::vector<Chair>{};
        if (!chairs) return std::nullopt;
        seats[p][depth].push_back(std::move(*chairs));
      }
    }
  }
  return seats;
}

}  // namespace tangram::baseline
