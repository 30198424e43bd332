// Closed form of one chain.
#include <algorithm>

#include "tangram/base/at.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

namespace {

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The recursion of README.md, from the last stage to the first. True when every stage holds its microbatches.
bool in_flight_at(const Program& program, const Chain& chain, std::int64_t period, std::vector<std::int64_t>& n) {
  std::int64_t q = 0;
  std::int64_t downstream = 0;
  for (std::size_t s = chain.stages.size(); s-- > 0;) {
    const Candidate& c = chain.stages[s].candidate;
    const bool last = s + 1 == chain.stages.size();
    const std::int64_t x = c.T + (last ? 0 : 2 * boundary_after(program, chain, s).latency + q);
    const std::int64_t count = std::max(downstream + 1, ceil_divide(x, period));
    if (std::min(count, program.microbatches) > c.n_max) return false;
    if (program.classic_warmup && std::min(count, program.microbatches) > downstream + 1) return false;
    n[s] = count;
    q = std::max(period * (count - 1) + c.T, x);
    downstream = count;
  }
  return true;
}

// Of stages that stop for both of their boundaries.
std::int64_t blocking_period(const Program& program, const Chain& chain) {
  std::int64_t period = 1;
  std::int64_t before = 0;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const bool last = s + 1 == chain.stages.size();
    const std::int64_t behind = last ? 0 : boundary_after(program, chain, s).latency;
    period = std::max(period, before + chain.stages[s].candidate.T + behind);
    before = behind;
  }
  return period;
}

// Stages that stop never wait for a round trip: those behind them have stopped, too.
bool holds_classic_warmups(const Program& program, Chain& chain) {
  const auto count = static_cast<std::int64_t>(chain.stages.size());
  for (std::int64_t s = 0; s < count; ++s) {
    at(chain.in_flight, s) = count - s;
    if (std::min(count - s, program.microbatches) > at(chain.stages, s).candidate.n_max) return false;
  }
  return true;
}

// The smallest from `lowest` on at which every stage holds its microbatches; 0: there is none.
std::int64_t least_period(const Program& program, Chain& chain, std::int64_t lowest, std::int64_t latency) {
  if (program.blocking_transfers) {
    return holds_classic_warmups(program, chain) ? blocking_period(program, chain) : 0;
  }
  // Feasibility is monotone in the period, and at P = Lat every warm-up is the classic one.
  std::int64_t highest = std::max(lowest, latency);
  if (!in_flight_at(program, chain, highest, chain.in_flight)) return 0;
  while (lowest < highest) {
    const std::int64_t middle = lowest + (highest - lowest) / 2;
    if (in_flight_at(program, chain, middle, chain.in_flight)) {
      highest = middle;
    } else {
      lowest = middle + 1;
    }
  }
  in_flight_at(program, chain, highest, chain.in_flight);
  return highest;
}

}  // namespace

bool evaluate(const Program& program, Chain& chain) {
  std::int64_t lowest = 1;
  std::int64_t latency = 0;
  std::int64_t a = 0;
  std::int64_t o = 0;
  for (std::size_t s = chain.stages.size(); s-- > 0;) {
    const Candidate& stage = chain.stages[s].candidate;
    std::int64_t c = 0;
    if (s + 1 < chain.stages.size()) {
      const Price& price = boundary_after(program, chain, s);
      if (price.is_none()) return false;
      c = price.latency;
      lowest = std::max(lowest, price.occupancy);
    }
    lowest = std::max(lowest, stage.T);
    a = std::max(a + stage.F + c, stage.A + latency + 2 * c);
    latency += stage.T + 2 * c;
    o = std::max(o, stage.o);
  }
  chain.in_flight.assign(chain.stages.size(), 0);
  chain.period = least_period(program, chain, lowest, latency);
  if (chain.period == 0) return false;
  chain.time = a + (program.microbatches - 1) * chain.period + o;
  return true;
}

}  // namespace tangram::chain
