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
  latency_gaps_.resize(program.prices.size());
  for (int cut = 0; cut <= program.blocks; ++cut) {
    LatencyGap& latency_gap = at(latency_gaps_, at(program.cut_kind, cut));
    if (latency_gap.empty()) latency_gap = latency_gap_of(cut);
  }
}

BoundaryPrices::LatencyGap BoundaryPrices::latency_gap_of(int cut) const {
  const int keys = program_.keys;
  LatencyGap latency_gap(keys, keys);
  for (int x = 0; x < keys; ++x) {
    for (int y = 0; y < keys; ++y) {
      std::int64_t& most = latency_gap(x, y);
      for (int front = 0; front < keys; ++front) {
        const Price& to_x = program_.price(cut, front, x);
        const Price& to_y = program_.price(cut, front, y);
        if (x == y || !counts(to_y)) continue;
        most = std::max(most, fits(to_x) ? to_x.latency - to_y.latency : kFar);
      }
    }
  }
  return latency_gap;
}

}  // namespace tangram::chain
