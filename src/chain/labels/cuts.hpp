// Tests of which any one rules something out. Goes in: the tests' answers as they fall. Comes out: the order in which
// to ask them, and what each removed. Which tests pay depends on fleet and model: the one that removes most is asked
// first. What is removed never depends on the order, because the answer is the same for any: one "yes" is enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tangram::chain {

template <std::size_t kTests>
class CutList {
 public:
  /// Whether a test says yes; test(i) asks the i-th.
  template <class Test>
  bool any(const Test& test) {
    for (std::size_t place = 0; place < kTests; ++place) {
      const std::size_t i = order_[place];
      if (!test(i)) continue;
      ++removed_[i];
      if (place > 0 && removed_[i] > removed_[order_[place - 1]]) std::swap(order_[place], order_[place - 1]);
      return true;
    }
    return false;
  }
  [[nodiscard]] std::int64_t removed(std::size_t i) const { return removed_[i]; }

 private:
  std::array<std::size_t, kTests> order_ = first_order();
  std::array<std::int64_t, kTests> removed_{};

  static constexpr std::array<std::size_t, kTests> first_order() {
    std::array<std::size_t, kTests> order{};
    for (std::size_t i = 0; i < kTests; ++i) order[i] = i;
    return order;
  }
};

}  // namespace tangram::chain
