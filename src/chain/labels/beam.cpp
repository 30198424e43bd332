#include "beam.hpp"

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::chain {

bool Smallest::excludes(double value, std::size_t count) {
  if (heap_.size() == count && value >= heap_.front()) return true;
  if (heap_.size() == count) {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
  heap_.push_back(value);
  std::push_heap(heap_.begin(), heap_.end());
  return false;
}

std::vector<std::uint8_t> within_beam(std::vector<RankedNode> order, std::size_t width, std::size_t nodes) {
  if (order.size() <= width) return {};
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(width), order.end());
  const RankedNode worst = order[width];
  std::vector<std::uint8_t> kept(nodes, 0);
  for (const RankedNode& entry : order) {
    if (entry < worst) at(kept, entry.second) = 1;
  }
  return kept;
}

}  // namespace tangram::chain
