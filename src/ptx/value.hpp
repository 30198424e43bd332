// What a register holds at a place, as far as it is known. Goes in: numbers, pointers, predicates. Comes out: the few
// things that it may be.
#pragma once

#include <optional>
#include <vector>

#include "domain.hpp"
#include "form.hpp"

namespace tangram::ptx {

inline constexpr int kNumber = -1;  ///< no pointer
inline constexpr int kOnChip = -2;  ///< into memory that no other launch sees, or into a variable of the module

/// A number, or an offset in bytes behind the start of the allocation of an argument. Of a number only what it is
/// modulo two to the width of its register counts.
struct Choice {
  int base = kNumber;
  Form offset;

  auto operator<=>(const Choice&) const = default;
};

struct Value {
  std::vector<Choice> choices;  ///< any of them; none: never computed
  Predicate predicate;          ///< of a register that holds one; null: not known

  [[nodiscard]] static Value number(Form form) { return {{{kNumber, std::move(form)}}, nullptr}; }
  [[nodiscard]] bool is_single() const { return choices.size() == 1; }
  /// The form of a plain number; nothing where it may be several things or a pointer.
  [[nodiscard]] std::optional<Form> form() const {
    return is_single() && choices.front().base == kNumber ? std::optional(choices.front().offset) : std::nullopt;
  }
  bool operator==(const Value&) const = default;
};

/// Where one of both holds. False where there are too many: then the value is not known.
[[nodiscard]] bool join(Value& value, const Value& other);

}  // namespace tangram::ptx
