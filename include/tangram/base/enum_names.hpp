// Sets of enumerators and the names that people have for them, as a table says both.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "tangram/base/enum_set.hpp"

namespace tangram {

template <class E, std::size_t N>
using EnumNames = std::array<std::pair<std::string_view, E>, N>;

/// In the order of the table.
template <class E, std::size_t N>
[[nodiscard]] std::vector<std::string_view> names_in(const EnumNames<E, N>& table, const EnumSet<E>& members) {
  std::vector<std::string_view> names;
  for (const auto& [name, member] : table) {
    if (members.has(member)) names.push_back(name);
  }
  return names;
}

/// Those of the table that are among the words; what the table has not is left out.
template <class E, std::size_t N, class Words>
[[nodiscard]] EnumSet<E> members_called(const EnumNames<E, N>& table, const Words& words) {
  EnumSet<E> members;
  for (const auto& [name, member] : table) {
    if (std::ranges::find(words, name) != std::ranges::end(words)) members.add(member);
  }
  return members;
}

}  // namespace tangram
