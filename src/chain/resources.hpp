// What options draw on (Program::resources): units of each class, and what may be spent where that is limited. Goes in:
// an option, prices or amounts of the resources. Comes out: what it costs, and what it takes.
#pragma once

#include <cstdint>
#include <span>

#include "tangram/base/at.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

[[nodiscard]] inline double option_price(const Program& program, const Option& option, std::span<const double> prices) {
  double price = 0;
  for (const Use& use : option.uses) price += at(prices, use.island_class) * use.units;
  if (!program.unit_spend.empty()) price += prices.back() * static_cast<double>(program.spend_of(option));
  return price;
}

/// Adds what the option draws to `taken`; with `times` of -1 it is taken off.
template <class Number>
void add_use(const Program& program, const Option& option, Number times, std::span<Number> taken) {
  for (const Use& use : option.uses) {
    at(taken, use.island_class) += times * static_cast<Number>(use.units);
  }
  if (!program.unit_spend.empty()) taken.back() += times * static_cast<Number>(program.spend_of(option));
}

/// Of amounts of the resources, at these prices.
[[nodiscard]] inline double worth(std::span<const double> prices, std::span<const std::int64_t> amounts) {
  double sum = 0;
  for (std::size_t k = 0; k < amounts.size(); ++k) sum += prices[k] * static_cast<double>(amounts[k]);
  return sum;
}

}  // namespace tangram::chain
