#include "pack_bins.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace tangram::plan {

namespace {

class BinPacker {
 public:
  BinPacker(const std::vector<int>& sizes, int bin) : bin_(bin) {
    for (std::size_t i = 0; i < sizes.size(); ++i) items_[sizes[i]].push_back(i);
    for (const auto& [size, items] : items_) {
      sizes_.push_back(size);
      left_.push_back(static_cast<int>(items.size()));
    }
  }

  std::optional<std::vector<std::vector<std::size_t>>> run(int bins) {
    if (!pack(bins)) return std::nullopt;
    std::vector<std::vector<std::size_t>> result;
    for (const std::vector<int>& counts : bins_) {
      std::vector<std::size_t>& bin = result.emplace_back();
      for (std::size_t s = 0; s < counts.size(); ++s) {
        std::vector<std::size_t>& items = items_.at(sizes_[s]);
        for (int i = 0; i < counts[s]; ++i) {
          bin.push_back(items.back());
          items.pop_back();
        }
      }
    }
    return result;
  }

 private:
  /// Whether what is left fits into so many bins; notes down how.
  bool pack(int bins) {
    if (std::ranges::all_of(left_, [](int count) { return count == 0; })) return true;
    if (bins == 0 || hopeless_.contains({bins, left_})) return false;
    const std::pair before(bins, left_);
    std::size_t largest = left_.size() - 1;
    while (left_[largest] == 0) --largest;
    bins_.emplace_back(sizes_.size(), 0);
    put(largest, 1);
    if (fill(largest + 1, bin_ - sizes_[largest], bins)) return true;
    put(largest, -1);
    bins_.pop_back();
    hopeless_.insert(before);
    return false;
  }

  /// Puts items of the sizes before `end` into the last bin, as many of the larger ones as there is room for first.
  bool fill(std::size_t end, int room, int bins) {
    if (end == 0) return pack(bins - 1);
    const std::size_t size = end - 1;
    const int most = std::min(left_[size], room / sizes_[size]);
    for (int count = most; count >= 0; --count) {
      put(size, count);
      if (fill(size, room - count * sizes_[size], bins)) return true;
      put(size, -count);
    }
    return false;
  }

  void put(std::size_t size, int count) {
    left_[size] -= count;
    bins_.back()[size] += count;
  }

  int bin_;
  std::map<int, std::vector<std::size_t>> items_;  // by size
  std::vector<int> sizes_;                         // ascending
  std::vector<int> left_;                          // items, by size
  std::vector<std::vector<int>> bins_;             // items in each, by size
  std::set<std::pair<int, std::vector<int>>> hopeless_;
};

}  // namespace

std::optional<std::vector<std::vector<std::size_t>>> pack_bins(const std::vector<int>& sizes, int bin, int bins) {
  const bool too_large = std::ranges::any_of(sizes, [&](int size) { return size > bin; });
  if (too_large) return std::nullopt;
  return BinPacker(sizes, bin).run(bins);
}

}  // namespace tangram::plan
