// Closed form of one chain.
#include <algorithm>

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
  // Feasibility is monotone in the period, and at P = Lat every warm-up is the classic one.
  std::int64_t highest = std::max(lowest, latency);
  if (!in_flight_at(program, chain, highest, chain.in_flight)) return false;
  while (lowest < highest) {
    const std::int64_t middle = lowest + (highest - lowest) / 2;
    if (in_flight_at(program, chain, middle, chain.in_flight)) {
      highest = middle;
    } else {
      lowest = middle + 1;
    }
  }
  in_flight_at(program, chain, highest, chain.in_flight);
  chain.period = highest;
  chain.time = a + (program.microbatches - 1) * highest + o;
  return true;
}

}  // namespace tangram::chain
