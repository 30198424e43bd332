// Elements by the signed numbers that blocks, options and depths are counted in, or by what an enumeration names.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

#include "tangram/base/assert.hpp"

namespace tangram {

template <class Number>
concept ElementNumber = std::integral<Number> || std::is_enum_v<Number>;

/// The element of that number, as `range[number]`. Builds with assertions check that there is one.
template <class Range, ElementNumber Number>
[[nodiscard]] constexpr decltype(auto) at(Range&& range, Number number) {
  const auto place = static_cast<std::size_t>(number);  // of negative numbers far behind the end
  TANGRAM_DEBUG_ASSERT(place < std::size(range));
  return range[place];
}

}  // namespace tangram
