// What the shapes of a label's stages add up to under Program::placement. Goes in: a program. Comes out: numbers for
// the sums that occur, so that a state's key holds one number; an option leads from one to the next, or does not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

class Loads {
 public:
  static constexpr std::int32_t kNothing = 0;
  static constexpr std::int32_t kTooMuch = -1;

  explicit Loads(const Program& program) : program_(program) { number_of(Sums(program.placement.size(), 0)); }

  /// The load once an option's shapes are placed, too. O(limits) the first time it is asked for.
  [[nodiscard]] std::int32_t after(std::int32_t load, int option) {
    if (program_.placement.empty()) return kNothing;
    if (next_(load, option) == kUnknown) {
      const std::int32_t found = find(load, at(program_.options, option));  // which may add rows
      next_(load, option) = found;
    }
    return next_(load, option);
  }

 private:
  using Sums = std::vector<std::int64_t>;  // by limit
  static constexpr std::int32_t kUnknown = -2;

  std::int32_t find(std::int32_t load, const Option& option) {
    if (option.weights.empty()) return load;
    Sums sums = at(sums_, load);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += option.weights[i];
      if (sums[i] > program_.placement[i]) return kTooMuch;
    }
    return number_of(std::move(sums));
  }

  std::int32_t number_of(Sums sums) {
    const auto [entry, is_new] = numbers_.try_emplace(std::move(sums), static_cast<std::int32_t>(sums_.size()));
    if (is_new) {
      sums_.push_back(entry->first);
      next_.add_row(std::vector<std::int32_t>(program_.options.size(), kUnknown));
    }
    return entry->second;
  }

  const Program& program_;
  std::map<Sums, std::int32_t> numbers_;
  std::vector<Sums> sums_;
  Grid<std::int32_t> next_;  // by load and option
};

}  // namespace tangram::chain
