#include "label.hpp"

namespace tangram::chain {

BoundaryPrices::BoundaryPrices(const Program& program, std::int64_t period, Fronts fronts)
    : program_(program), period_(period), fronts_(fronts) {
  const auto keys = static_cast<std::size_t>(program.keys);
  longest_.assign(keys, 0);
  for (std::size_t i = 0; i < program.prices.size(); ++i) {
    if (!counts(program.prices[i])) continue;
    longest_[i % keys] = std::max(longest_[i % keys], program.prices[i].latency);
  }
  latency_gaps_.resize(static_cast<std::size_t>(program.cut_kinds));
  for (int cut = 0; cut <= program.blocks; ++cut) {
    LatencyGap& latency_gap = latency_gaps_[static_cast<std::size_t>(program.cut_kind[static_cast<std::size_t>(cut)])];
    if (latency_gap.empty()) latency_gap = latency_gap_of(cut);
  }
}

BoundaryPrices::LatencyGap BoundaryPrices::latency_gap_of(int cut) const {
  const int keys = program_.keys;
  LatencyGap latency_gap;
  latency_gap.reserve(static_cast<std::size_t>(keys) * static_cast<std::size_t>(keys));
  for (int x = 0; x < keys; ++x) {
    for (int y = 0; y < keys; ++y) {
      std::int64_t most = 0;
      for (int front = 0; front < keys; ++front) {
        const Price& to_x = program_.price(cut, front, x);
        const Price& to_y = program_.price(cut, front, y);
        if (x == y || !counts(to_y)) continue;
        most = std::max(most, fits(to_x) ? to_x.latency - to_y.latency : kFar);
      }
      latency_gap.push_back(most);
    }
  }
  return latency_gap;
}

}  // namespace tangram::chain
