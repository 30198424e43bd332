// What a beam search keeps of a position: the labels of the smallest bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tangram::chain {

/// The smallest of many numbers, so many of them.
class Smallest {
 public:
  /// Whether `value` is none of the `count` smallest so far; takes note of it otherwise.
  [[nodiscard]] bool excludes(double value, std::size_t count);

 private:
  std::vector<double> heap_;  // the largest in front
};

/// A label's bound and its node.
using RankedNode = std::pair<double, int>;

/// Marks the nodes, out of so many, of the `width` smallest entries. Empty: there are no more than that, and all stay.
[[nodiscard]] std::vector<std::uint8_t> within_beam(std::vector<RankedNode> order, std::size_t width,
                                                    std::size_t nodes);

}  // namespace tangram::chain
