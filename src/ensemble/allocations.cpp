#include "allocations.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "tangram/base/at.hpp"

namespace tangram::ensemble {

namespace {

std::vector<int> counts_of(const cluster::IslandLevel& level) {
  std::vector<int> counts;
  counts.reserve(level.classes.size());
  for (const cluster::IslandClass& c : level.classes) counts.push_back(pieces_of(c));
  return counts;
}

// Whole classes: group_of[class].
Allocation allocation_of(const std::vector<int>& counts, const std::vector<int>& group_of) {
  const int groups = *std::max_element(group_of.begin(), group_of.end()) + 1;
  Allocation allocation(static_cast<std::size_t>(groups), std::vector<int>(counts.size(), 0));
  for (std::size_t k = 0; k < counts.size(); ++k) at(allocation, group_of[k])[k] = counts[k];
  return allocation;
}

// All ways to put the classes from `k` on into groups; the first class of a new group gives it its number.
void add_partitions(const std::vector<int>& counts, int most_groups, std::vector<int>& group_of, int groups,
                    std::vector<Allocation>& allocations) {
  if (group_of.size() == counts.size()) {
    if (groups > 1) allocations.push_back(allocation_of(counts, group_of));
    return;
  }
  for (int g = 0; g <= groups && g < most_groups; ++g) {
    group_of.push_back(g);
    add_partitions(counts, most_groups, group_of, std::max(groups, g + 1), allocations);
    group_of.pop_back();
  }
}

// With many classes: each alone, and each against all others.
void add_some_partitions(const std::vector<int>& counts, int most_groups, std::vector<Allocation>& allocations) {
  std::vector<int> group_of(counts.size());
  std::iota(group_of.begin(), group_of.end(), 0);
  if (static_cast<int>(counts.size()) <= most_groups) allocations.push_back(allocation_of(counts, group_of));
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::fill(group_of.begin(), group_of.end(), 0);
    group_of[k] = 1;
    allocations.push_back(allocation_of(counts, group_of));
  }
}

Allocation even_allocation(const std::vector<int>& counts, const std::vector<double>& power, int groups) {
  Allocation allocation(static_cast<std::size_t>(groups), std::vector<int>(counts.size(), 0));
  std::vector<double> sum(allocation.size(), 0);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    for (auto& group : allocation) group[k] = counts[k] / groups;
  }
  for (std::size_t k = 0; k < counts.size(); ++k) {
    for (int left = counts[k] % groups; left > 0; --left) {
      const auto weakest = static_cast<std::size_t>(std::min_element(sum.begin(), sum.end()) - sum.begin());
      ++allocation[weakest][k];
      sum[weakest] += power[k];
    }
  }
  return allocation;
}

// Links between pieces of a class are those of the worst pair; a group with one piece does not see them.
bool is_like_aligned(const Allocation& allocation, const std::vector<int>& counts) {
  const auto groups = static_cast<unsigned>(allocation.size());
  if (!std::has_single_bit(groups)) return false;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (allocation.front()[k] != allocation.back()[k] || (allocation.front()[k] == 1 && counts[k] > 1)) return false;
  }
  return true;
}

bool has_empty_group(const Allocation& allocation) {
  return std::any_of(allocation.begin(), allocation.end(), [](const std::vector<int>& group) {
    return std::all_of(group.begin(), group.end(), [](int count) { return count == 0; });
  });
}

}  // namespace

int pieces_of(const cluster::IslandClass& island_class) {
  const auto islands = static_cast<int>(island_class.islands.size());
  return islands > 1 ? islands : island_class.members_per_island;
}

std::vector<Allocation> allocations_of(const cluster::IslandLevel& level, const std::vector<double>& power,
                                       int most_groups, const compose::EnsembleTuning& tuning) {
  const std::vector<int> counts = counts_of(level);
  std::vector<Allocation> allocations;
  if (std::ssize(counts) <= tuning.all_partitions_classes) {
    std::vector<int> group_of;
    add_partitions(counts, most_groups, group_of, 0, allocations);
  } else {
    add_some_partitions(counts, most_groups, allocations);
  }
  for (int groups = 2; groups <= std::min(most_groups, tuning.most_even_groups); ++groups) {
    const Allocation allocation = even_allocation(counts, power, groups);
    if (!has_empty_group(allocation) && !is_like_aligned(allocation, counts)) allocations.push_back(allocation);
  }
  return allocations;
}

std::vector<Allocation> neighbours_of(const Allocation& allocation) {
  std::vector<Allocation> result;
  for (std::size_t k = 0; k < allocation.front().size(); ++k) {
    for (std::size_t from = 0; from < allocation.size(); ++from) {
      for (std::size_t to = 0; to < allocation.size(); ++to) {
        if (from == to || allocation[from][k] == 0) continue;
        for (const int step : std::set<int, std::greater<>>{allocation[from][k] / 2, 1}) {
          if (step == 0) continue;
          Allocation next = allocation;
          next[from][k] -= step;
          next[to][k] += step;
          if (!has_empty_group(next)) result.push_back(std::move(next));
        }
      }
    }
  }
  return result;
}

}  // namespace tangram::ensemble
