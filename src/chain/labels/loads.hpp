// What the shapes of a label's stages add up to under Program::placement. Goes in: a program. Comes out: numbers for
// the sums that occur, so that a state's key holds one number; an option leads from one to the next, or does not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

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
    const std::size_t at = static_cast<std::size_t>(load) * program_.options.size() + static_cast<std::size_t>(option);
    if (next_[at] == kUnknown) {
      const std::int32_t found = find(load, program_.options[static_cast<std::size_t>(option)]);
      next_[at] = found;
    }
    return next_[at];
  }

 private:
  using Sums = std::vector<std::int64_t>;  // by limit
  static constexpr std::int32_t kUnknown = -2;

  std::int32_t find(std::int32_t load, const Option& option) {
    if (option.weights.empty()) return load;
    Sums sums = sums_[static_cast<std::size_t>(load)];
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
      next_.resize(next_.size() + program_.options.size(), kUnknown);
    }
    return entry->second;
  }

  const Program& program_;
  std::map<Sums, std::int32_t> numbers_;
  std::vector<Sums> sums_;
  std::vector<std::int32_t> next_;  // [load * options + option]
};

}  // namespace tangram::chain
