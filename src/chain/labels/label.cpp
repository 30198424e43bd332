#include "label.hpp"

#include "tangram/base/at.hpp"

namespace tangram::chain {

BoundaryPrices::BoundaryPrices(const Program& program, std::int64_t period, Fronts fronts)
    : program_(program), period_(period), fronts_(fronts) {
  longest_.assign(static_cast<std::size_t>(program.keys), 0);
  for (const Grid<Price>& of_kind : program.prices) {
    for (int front = 0; front < program.keys; ++front) {
      for (int head = 0; head < program.keys; ++head) {
        const Price& price = of_kind(front, head);
        if (counts(price)) at(longest_, head) = std::max(at(longest_, head), price.latency);
      }
    }
  }
  latency_gaps_.reserve(program.prices.size());
  for (const Grid<Price>& of_kind : program.prices) latency_gaps_.emplace_back(*this, of_kind);
}

std::int64_t BoundaryPrices::latency_gap_of(const Grid<Price>& of_kind, int x, int y) const {
  if (x == y) return 0;
  std::int64_t most = 0;
  for (int front = 0; front < program_.keys; ++front) {
    const Price& to_x = of_kind(front, x);
    const Price& to_y = of_kind(front, y);
    if (counts(to_y)) most = std::max(most, fits(to_x) ? to_x.latency - to_y.latency : kFar);
  }
  return most;
}

}  // namespace tangram::chain
