// Dominance between vectors of costs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace tangram::multimodal {

/// All smaller is better.
using Costs = std::vector<std::int64_t>;

[[nodiscard]] inline bool dominates(const Costs& a, const Costs& b) {
  return std::ranges::equal(a, b, [](std::int64_t x, std::int64_t y) { return x <= y; });
}

/// Leaves the entries whose `costs` no other dominates, in their lexicographic order; of equal ones that of the first
/// `choices`. O(n log n + n f) for f that are left.
template <class Entry>
void keep_efficient(std::vector<Entry>& entries) {
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tie(a.costs, a.choices) < std::tie(b.costs, b.choices);
  });
  // Whatever dominates an entry comes before it.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto end = entries.begin() + static_cast<std::ptrdiff_t>(kept);
    const bool beaten =
        std::any_of(entries.begin(), end, [&](const Entry& other) { return dominates(other.costs, entries[i].costs); });
    if (beaten) continue;
    if (kept != i) entries[kept] = std::move(entries[i]);
    ++kept;
  }
  entries.resize(kept);
}

}  // namespace tangram::multimodal
