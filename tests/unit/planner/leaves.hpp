// All leaves of a value, by the members that are stored (src/planner/search_cache/members.hpp): numbers, texts,
// choices. Goes in: a value. Comes out: each leaf by reference, changed or filled with random content.
#pragma once

#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "search_cache/as_json.hpp"

namespace tangram::planner::tests {

template <class T>
inline constexpr bool kIsLeaf =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, SharedText>;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;

template <class T, class Visitor>
void visit_leaves(T& value, Visitor& visitor) {
  if constexpr (kIsLeaf<T>) {
    visitor(value);
  } else if constexpr (search_cache::kIsQuantity<T>) {
    auto number = value.value();
    visitor(number);
    value = T(number);
  } else if constexpr (search_cache::kIsOptional<T>) {
    visitor.length(value);
    if (value) visit_leaves(*value, visitor);
  } else if constexpr (search_cache::kIsList<T>) {
    if constexpr (!kIsArray<T>) visitor.length(value);
    for (auto& item : value) visit_leaves(item, visitor);
  } else if constexpr (search_cache::kIsPair<T>) {
    visit_leaves(value.first, visitor);
    visit_leaves(value.second, visitor);
  } else {
    std::apply([&](auto&... member) { (visit_leaves(member, visitor), ...); }, search_cache::members(value));
  }
}

/// Changes one leaf, or one length, by its number.
class ChangeOne {
 public:
  explicit ChangeOne(int number) : left_(number) {}
  [[nodiscard]] bool done() const { return left_ < 0; }

  template <class T>
  void operator()(T& leaf) {
    if (left_-- != 0) return;
    if constexpr (std::is_same_v<T, bool>) {
      leaf = !leaf;
    } else if constexpr (std::is_enum_v<T>) {
      leaf = static_cast<T>(static_cast<int>(leaf) == 0 ? 1 : 0);
    } else if constexpr (std::is_same_v<T, std::string>) {
      leaf += "x";
    } else if constexpr (std::is_same_v<T, SharedText>) {
      leaf = leaf.str() + "x";
    } else {
      leaf = leaf == std::numeric_limits<T>::max() ? T(0) : leaf + T(1);
    }
  }
  template <class T>
  void length(std::vector<T>& list) {
    if (left_-- == 0) list.emplace_back();
  }
  template <class T>
  void length(std::optional<T>& maybe) {
    if (left_-- != 0) return;
    if (maybe) {
      maybe.reset();
    } else {
      maybe.emplace();
    }
  }

 private:
  int left_;
};

/// Anything that the type can hold, more of what is odd.
class Fill {
 public:
  explicit Fill(unsigned seed) : random_(seed) {}

  template <class T>
  void operator()(T& leaf) {
    if constexpr (std::is_same_v<T, bool>) {
      leaf = below(2) == 1;
    } else if constexpr (std::is_enum_v<T>) {
      leaf = static_cast<T>(below(static_cast<int>(search_cache::last_of(T{})) + 1));
    } else if constexpr (std::is_same_v<T, std::string>) {
      const std::vector<std::string> texts{"", "a", "\"quoted\" \\", "line\nend", "\u00b5s \u2192 \u6c49", "\x01"};
      leaf = texts[static_cast<std::size_t>(below(static_cast<int>(texts.size())))];
    } else if constexpr (std::is_floating_point_v<T>) {
      const std::vector<double> odd{
          0.0,     -0.0, 0.1, 1e-310, std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity(),
          -1.0 / 3};
      leaf = odd[static_cast<std::size_t>(below(static_cast<int>(odd.size())))];
    } else {
      const std::vector<T> odd{T(0), T(1), std::numeric_limits<T>::max(), std::numeric_limits<T>::min(),
                               static_cast<T>(below(1'000'000))};
      leaf = odd[static_cast<std::size_t>(below(static_cast<int>(odd.size())))];
    }
  }
  template <class T>
  void length(std::vector<T>& list) {
    list.resize(static_cast<std::size_t>(below(3)));
  }
  template <class T>
  void length(std::optional<T>& maybe) {
    if (below(2) == 1) maybe.emplace();
  }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  std::mt19937 random_;
};

/// Every leaf and length as text, to compare values without the code under test.
class List {
 public:
  template <class T>
  void operator()(T& leaf) {
    if constexpr (std::is_same_v<T, std::string>) {
      lines.push_back(leaf);
    } else if constexpr (std::is_floating_point_v<T>) {
      lines.push_back(std::to_string(std::bit_cast<std::uint64_t>(leaf)));
    } else {
      lines.push_back(std::to_string(static_cast<std::int64_t>(leaf)));
    }
  }
  template <class T>
  void length(std::vector<T>& list) {
    lines.push_back(std::to_string(list.size()));
  }
  template <class T>
  void length(std::optional<T>& maybe) {
    lines.emplace_back(maybe ? "some" : "none");
  }

  std::vector<std::string> lines;
};

template <class T>
std::vector<std::string> leaves_of(T value) {
  List list;
  visit_leaves(value, list);
  return std::move(list.lines);
}

}  // namespace tangram::planner::tests
