// Numbers of units as digits of a key. Goes in: how many units every class has. Comes out: where the digit of each
// class lies in a key of two words, if that is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tangram::chain {

/// The digit of a class: key / scale % radix.
struct Radix {
  std::uint64_t scale = 1;
  std::uint64_t radix = 1;
  bool high = false;  ///< in the second word
};

/// Classes in order, the first word as far as it goes. None where two words are too few.
[[nodiscard]] std::optional<std::vector<Radix>> radices_of(std::span<const int> units);

/// So many classes have their place with a unit each.
inline constexpr std::size_t kMostClasses = 124;

}  // namespace tangram::chain
