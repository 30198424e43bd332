#include "metis_groups.hpp"

#include <algorithm>
#include <numeric>

namespace tangram::baseline {

namespace {

using Item = std::vector<int>;  // stages that are permuted as one

int gpus_of(const Item& item) { return std::accumulate(item.begin(), item.end(), 0); }

/// Neighbours of the smallest number of GPUs, two by two.
std::vector<Item> merge_smallest(const std::vector<Item>& items) {
  const int smallest = gpus_of(items.front());
  std::vector<Item> merged;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool pair = i + 1 < items.size() && gpus_of(items[i]) == smallest && gpus_of(items[i + 1]) == smallest;
    merged.push_back(items[i]);
    if (pair) merged.back().insert(merged.back().end(), items[i + 1].begin(), items[i + 1].end());
    if (pair) ++i;
  }
  return merged;
}

std::vector<Item> merged_items(const DeviceGroups& sizes, int most) {
  std::vector<Item> items;
  for (const int size : sizes) items.push_back({size});
  const auto order = [](const Item& a, const Item& b) { return std::pair(gpus_of(a), a) < std::pair(gpus_of(b), b); };
  while (static_cast<int>(items.size()) > most) {
    std::ranges::sort(items, order);
    auto merged = merge_smallest(items);
    if (merged.size() == items.size()) break;
    items = std::move(merged);
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
