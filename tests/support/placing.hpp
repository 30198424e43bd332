// Whether shapes can be placed, by trying every way: what limits and bin packing are compared with.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "tangram/cluster/islands.hpp"

namespace tangram::test {

namespace placing {

// Of bins with as much room one is enough to try.
inline bool fit(const std::vector<int>& items, std::size_t next, std::vector<int>& room) {
  if (next == items.size()) return true;
  std::vector<int> tried;
  for (int& bin : room) {
    if (bin < items[next] || std::ranges::find(tried, bin) != tried.end()) continue;
    tried.push_back(bin);
    bin -= items[next];
    const bool done = fit(items, next + 1, room);
    bin += items[next];
    if (done) return true;
  }
  return false;
}

}  // namespace placing

/// Items of these sizes into equal bins.
inline bool can_pack(std::vector<int> items, int bin, int bins) {
  std::ranges::sort(items, std::greater{});
  std::vector<int> room(static_cast<std::size_t>(std::max(bins, 0)), bin);
  return placing::fit(items, 0, room);
}

/// Shapes, or runs of GPUs that lie together, in a class: parts in as few members as hold them, then members in
/// islands, beside those shapes that need whole ones.
inline bool can_place(const cluster::IslandClass& c, const std::vector<int>& shapes) {
  const int island_gpus = c.members_per_island * c.gpus_per_member;
  int islands = static_cast<int>(c.islands.size());
  std::vector<int> parts;
  std::vector<int> members;
  for (const int gpus : shapes) {
    if (gpus > island_gpus) {
      islands -= gpus / island_gpus;
    } else if (gpus >= c.gpus_per_member) {
      members.push_back(gpus / c.gpus_per_member);
    } else {
      parts.push_back(gpus);
    }
  }
  for (int broken = 0; !can_pack(parts, c.gpus_per_member, broken); ++broken) {
    if (broken == c.member_count()) return false;
    members.push_back(1);
  }
  return islands >= 0 && can_pack(members, c.members_per_island, islands);
}

}  // namespace tangram::test
