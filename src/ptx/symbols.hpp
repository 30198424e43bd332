// What affine forms are made of. Goes in: indices of threads and blocks, iterations of loops, what is not known. Comes
// out: numbered symbols with their ranges; digits of others where a kernel divides.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "form.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {

/// Beyond it a value counts as unbounded.
inline constexpr std::int64_t kUnbounded = std::int64_t{1} << 62;

[[nodiscard]] constexpr std::int64_t saturated(Wide value) {
  return value >= kUnbounded ? kUnbounded : value <= -kUnbounded ? -kUnbounded : static_cast<std::int64_t>(value);
}

struct Range {
  std::int64_t low = -kUnbounded;
  std::int64_t high = kUnbounded;

  [[nodiscard]] bool is_bounded() const { return low > -kUnbounded && high < kUnbounded; }
  auto operator<=>(const Range&) const = default;
};

struct Symbol {
  Range range;
  /// Every value of the range is taken, whatever the symbols that it is independent of.
  bool exact = false;
  int split = -1;             ///< the division that it is a digit of
  bool is_iteration = false;  ///< of a loop
  Reason why;                 ///< where it is not exact
};

/// value = divisor * quotient + remainder. The value is from 0 on.
struct Split {
  Form value;
  std::int64_t size = 0;  ///< values are below
  std::int64_t divisor = 1;
  int quotient = 0;
  int remainder = 0;

  [[nodiscard]] std::optional<Form> digits() const {
    return Form::combine(divisor, Form::of(quotient), 1, Form::of(remainder));
  }
};

class Symbols {
 public:
  /// One for each direction in which there is more than one.
  explicit Symbols(const Launch& launch);

  [[nodiscard]] const Form& thread(int dimension) const { return threads_[static_cast<std::size_t>(dimension)]; }
  [[nodiscard]] const Form& block(int dimension) const { return blocks_[static_cast<std::size_t>(dimension)]; }
  [[nodiscard]] const Symbol& at(int symbol) const { return symbols_[static_cast<std::size_t>(symbol)]; }
  [[nodiscard]] const Split& split(int number) const { return splits_[static_cast<std::size_t>(number)]; }

  /// A value of which no more than the range is known. The same for the same place, slot and range.
  [[nodiscard]] Form opaque(int place, int slot, Range range, const Reason& why);
  /// The number of an iteration, from 0 on.
  [[nodiscard]] int iteration();
  void limit_iteration(int symbol, std::int64_t high);

  /// The digits of a value from 0 to size - 1.
  [[nodiscard]] const Split& divide(const Form& value, std::int64_t size, std::int64_t divisor);

  /// x - (x / d) * d is the remainder.
  [[nodiscard]] Form with_remainders(const Form& form) const;

  /// Over the box of all symbols; saturated at kUnbounded.
  [[nodiscard]] Range range(const Form& form) const;
  /// Whether every pair of their values occurs.
  [[nodiscard]] bool independent(int a, int b) const;
  /// Whether the form takes every whole number of its range.
  [[nodiscard]] bool is_dense(const Form& form) const;
  /// Why some symbol of the form is not exact; null where all are.
  [[nodiscard]] const Reason* doubtful(const Form& form) const;
  [[nodiscard]] bool has_iteration(const Form& form) const;

 private:
  int add(Symbol symbol);

  std::deque<Symbol> symbols_;  ///< reasons are pointed to while others come
  std::vector<Split> splits_;
  std::array<Form, 3> threads_;
  std::array<Form, 3> blocks_;
  std::map<std::tuple<int, int, std::int64_t, std::int64_t>, int> opaque_;
  std::map<std::tuple<Form, std::int64_t, std::int64_t>, int> divided_;
};

}  // namespace tangram::ptx
