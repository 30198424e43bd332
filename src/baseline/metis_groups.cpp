#include "metis_groups.hpp"

#include <algorithm>
#include <numeric>

namespace tangram::baseline {

namespace {

using Item = std::vector<int>;  // stages that are permuted as one

int gpus_of(const Item& item) { return std::accumulate(item.begin(), item.end(), 0); }

/// Of the first `pairs` pairs of neighbours those with the fewest GPUs become one.
std::vector<Item> merge_pairs(const std::vector<Item>& items, std::size_t pairs) {
  const int smallest = gpus_of(items.front());
  std::vector<Item> merged;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool whole = i % 2 == 0 && i / 2 < pairs && i + 1 < items.size();
    merged.push_back(items[i]);
    if (!whole || gpus_of(items[i]) != smallest || gpus_of(items[i + 1]) != smallest) continue;
    ++i;
    merged.back().insert(merged.back().end(), items[i].begin(), items[i].end());
  }
  return merged;
}

/// As many pairs as there are items too many, or all pairs of the smallest where those are more; again until it is
/// enough or leads nowhere.
std::vector<Item> merged_items(const DeviceGroups& sizes, int most) {
  std::vector<Item> items;
  for (const int size : sizes) items.push_back({size});
  int excess = static_cast<int>(items.size()) - most;
  while (excess > 0) {
    const auto other = std::ranges::find_if(items, [&](const Item& item) { return item != items.front(); });
    const auto alike = static_cast<int>(other - items.begin()) + (other != items.end() ? 1 : 0);
    const int pairs = std::max(excess, alike / 2);
    items = merge_pairs(items, static_cast<std::size_t>(pairs));
    excess = static_cast<int>(items.size()) - most;
    if (excess == pairs) break;
  }
  std::ranges::sort(items);
  return items;
}

class Walk {
 public:
  Walk(int stages, int permute_length, const std::function<bool(const DeviceGroups&)>& visit)
      : stages_(stages), permute_length_(permute_length), visit_(visit) {}

  /// Non-decreasing sizes from `least` for the stages left; false: the visitor has had enough.
  bool sizes(int gpus, int least) {
    const int left = stages_ - static_cast<int>(sizes_.size());
    if (left == 0) return gpus != 0 || permutations();
    for (int size = least; size * left <= gpus; size *= 2) {
      sizes_.push_back(size);
      const bool goes_on = sizes(gpus - size, size);
      sizes_.pop_back();
      if (!goes_on) return false;
    }
    return true;
  }

 private:
  bool permutations() {
    std::vector<Item> items = merged_items(sizes_, permute_length_);
    do {
      DeviceGroups groups;
      for (const Item& item : items) groups.insert(groups.end(), item.begin(), item.end());
      if (!visit_(groups)) return false;
    } while (std::ranges::next_permutation(items).found);
    return true;
  }

  int stages_;
  int permute_length_;
  const std::function<bool(const DeviceGroups&)>& visit_;
  DeviceGroups sizes_;
};

}  // namespace

bool for_device_groups(int gpus, int stages, const MetisSettings& settings,
                       const std::function<bool(const DeviceGroups&)>& visit) {
  const double least = settings.variance * std::max(gpus / stages, stages / gpus);
  int smallest = 1;
  while (smallest < least) smallest *= 2;
  return Walk(stages, settings.permute_length, visit).sizes(gpus, smallest);
}

}  // namespace tangram::baseline
