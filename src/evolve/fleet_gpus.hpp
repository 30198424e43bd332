// GPUs of a fleet by host name and number. Goes in: a fleet. Comes out: the node and the group of any GPU, if it is
// there.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tangram/base/assert.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/evolve/difference.hpp"

namespace tangram::evolve {

class FleetGpus {
 public:
  explicit FleetGpus(const cluster::Fleet& fleet) : fleet_(fleet) {
    for (std::size_t n = 0; n < fleet.nodes.size(); ++n) nodes_[fleet.nodes[n].name] = n;
  }

  struct Where {
    std::size_t node = 0;
    std::size_t group = 0;
  };
  /// Numbers count on from group to group, as runtimes number them.
  [[nodiscard]] std::optional<Where> find(const Gpu& gpu) const {
    const auto node = nodes_.find(gpu.first);
    if (node == nodes_.end()) return std::nullopt;
    int number = gpu.second;
    const auto& groups = fleet_.nodes[node->second].groups;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (number < groups[g].count) return Where{node->second, g};
      number -= groups[g].count;
    }
    return std::nullopt;
  }

  /// Of one that is there.
  [[nodiscard]] Where at(const Gpu& gpu) const {
    const std::optional<Where> where = find(gpu);
    TANGRAM_ASSERT(where);
    return where.value_or(Where{});
  }

 private:
  const cluster::Fleet& fleet_;
  std::map<std::string, std::size_t> nodes_;
};

}  // namespace tangram::evolve
