#include "screening.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "tangram/base/at.hpp"

namespace tangram::compose {

namespace {

constexpr double kAnyNumber = std::numeric_limits<double>::infinity();
constexpr double kRounding = 4;  // ns a block: once for forward and backward each, and for sums in another order

// Blocks that a part holds; 0: not even one fits.
double blocks_within(const OptionPart& part, std::int64_t slowest, const BlockTimes& times) {
  const double block = times(part.entry);
  if (block <= 0) return 0;
  return std::floor(static_cast<double>(slowest) / std::max(1.0, block - kRounding));
}

double units_of(const OptionPart& part, const std::vector<ClassShare>& shares) {
  return static_cast<double>(part.placement.gpus) / at(shares, part.placement.island_class).unit;
}

}  // namespace

// Dual prices: what a unit of each class holds at most, raised until no mixed stage holds more than its units cost.
double most_blocks(const std::vector<ClassShare>& shares, const std::vector<std::vector<OptionPart>>& options,
                   std::int64_t slowest, const BlockTimes& times) {
  std::vector<double> price(shares.size(), 0);
  for (const std::vector<OptionPart>& parts : options) {
    if (parts.size() > 1) continue;
    double& of_class = at(price, parts.front().placement.island_class);
    of_class = std::max(of_class, blocks_within(parts.front(), slowest, times) / units_of(parts.front(), shares));
  }
  double raise = 1;
  for (const std::vector<OptionPart>& parts : options) {
    double held = kAnyNumber;  // every part works on all blocks of the stage
    double cost = 0;
    for (const OptionPart& part : parts) {
      held = std::min(held, blocks_within(part, slowest, times));
      cost += at(price, part.placement.island_class) * units_of(part, shares);
    }
    if (held > 0 && cost <= 0) return kAnyNumber;
    if (held > raise * cost) raise = held / cost;
  }
  double blocks = 0;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (price[k] > 0) blocks += raise * price[k] * shares[k].units;
  }
  return blocks;
}

}  // namespace tangram::compose
