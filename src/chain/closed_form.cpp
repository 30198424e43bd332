// Closed form of one chain.
#include <algorithm>
#include <functional>
#include <vector>

#include "resources.hpp"
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

// The smallest period from `lowest` to `highest` that is allowed, as all longer ones are; `highest` is.
template <class Allows>
std::int64_t least_period(std::int64_t lowest, std::int64_t highest, const Allows& allows) {
  while (lowest < highest) {
    const std::int64_t middle = lowest + (highest - lowest) / 2;
    if (allows(middle)) {
      highest = middle;
    } else {
      lowest = middle + 1;
    }
  }
  return highest;
}

// What does not depend on the period.
struct FixedTerms {
  std::int64_t lowest = 1;      // period
  std::int64_t round_trip = 0;  // latency, with weight gradients
  std::int64_t latency = 0;
  std::int64_t a = 0;
  std::int64_t o = 0;
};

// The smallest period at which every stage holds its microbatches; 0: there is none.
std::int64_t period_of(const Program& program, Chain& chain, const FixedTerms& fixed) {
  if (program.blocking_transfers) {
    return holds_classic_warmups(program, chain) ? blocking_period(program, chain) : 0;
  }
  const auto holds = [&](std::int64_t period) { return in_flight_at(program, chain, period, chain.in_flight); };
  if (holds(fixed.lowest)) return fixed.lowest;  // as most do: what follows takes thirty of these
  // At P = Lat every warm-up is the classic one.
  const std::int64_t longest = std::max(fixed.lowest, fixed.round_trip);
  if (!holds(longest)) return 0;
  const std::int64_t period = least_period(fixed.lowest, longest, holds);
  holds(period);
  return period;
}

// Whether the passes of one chunk, two more in flight on each stage than on the one behind, keep to the period.
bool interleaves_at(const Program& program, const Chain& chain, std::int64_t period) {
  std::int64_t q = 0;
  std::int64_t n = 1;
  std::int64_t behind = 0;
  std::int64_t sent = boundary_around(program, chain).latency;
  for (std::size_t s = chain.stages.size(); s-- > 0; n += program.warmup_step()) {
    const Candidate& c = chain.stages[s].candidate;
    if (!program.interleaving.sends_block) sent = 0;
    const std::int64_t x = c.T + 2 * behind + q;
    if (c.T + sent > period || x > n * period) return false;
    q = std::max(period * (n - 1) + c.T + sent, x);
    if (s > 0) behind = sent = boundary_after(program, chain, s - 1).latency;
  }
  return true;
}

// Microbatches of the largest group that all stages hold.
std::int64_t largest_group(const Program& program, const Chain& chain) {
  std::int64_t most = INT64_MAX;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const std::int64_t held =
        program.interleaving.most_in_group(chain.in_flight[s], chain.stages[s].candidate.n_max, program.microbatches);
    most = std::min(most, held);
  }
  return most;
}

bool choose_group(const Program& program, Chain& chain, std::int64_t latency) {
  const auto count = static_cast<std::int64_t>(chain.stages.size());
  for (std::int64_t s = 0; s < count; ++s) at(chain.in_flight, s) = 1 + program.warmup_step() * (count - 1 - s);
  chain.group = program.interleaving.group_for(count, largest_group(program, chain), latency, chain.period);
  return chain.group > 0;
}

// Of all stages, and the way around.
std::int64_t latency_around(const Program& program, const Chain& chain) {
  std::int64_t latency = 2 * boundary_around(program, chain).latency;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    latency += chain.stages[s].candidate.passage();
    if (s + 1 < chain.stages.size()) latency += 2 * boundary_after(program, chain, s).latency;
  }
  return latency;
}

bool evaluate_interleaved(const Program& program, const FixedTerms& fixed, Chain& chain) {
  if (chain.stages.size() < 2) return false;
  const Price& around = boundary_around(program, chain);
  if (around.is_none()) return false;
  const std::int64_t lowest = std::max(fixed.lowest, around.occupancy);
  chain.period = least_period(lowest, std::max(lowest, fixed.latency + around.latency),
                              [&](std::int64_t period) { return interleaves_at(program, chain, period); });
  const std::int64_t latency = fixed.latency + 2 * around.latency;
  if (!choose_group(program, chain, latency)) return false;
  chain.time = fixed.a + (program.microbatches - 1) * chain.period + fixed.o +
               program.interleaving.wait_around(latency, chain.group, chain.period);
  return true;
}

}  // namespace

bool has_room(const Program& program, const Chain& chain) {
  std::vector<std::int64_t> taken(program.resources().size(), 0);
  std::vector<std::int64_t> weights(program.placement.size(), 0);
  for (const ChainStage& stage : chain.stages) {
    const Option& option = at(program.options, stage.option);
    add_use<std::int64_t>(program, option, 1, taken);
    for (std::size_t i = 0; i < option.weights.size(); ++i) weights[i] += option.weights[i];
  }
  const auto is_within = [](const std::vector<std::int64_t>& sums, const std::vector<std::int64_t>& most) {
    return std::ranges::equal(sums, most, std::less_equal());
  };
  return is_within(taken, program.resources()) && is_within(weights, program.placement);
}

bool evaluate(const Program& program, Chain& chain) {
  FixedTerms fixed;
  auto& [lowest, round_trip, latency, a, o] = fixed;
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
    latency += stage.passage() + 2 * c;
    round_trip += stage.T + 2 * c;
    o = std::max(o, stage.o);
  }
  chain.in_flight.assign(chain.stages.size(), 0);
  if (program.is_interleaved()) return evaluate_interleaved(program, fixed, chain);
  chain.period = period_of(program, chain, fixed);
  if (chain.period == 0) return false;
  chain.time = a + (program.microbatches - 1) * chain.period + o;
  return true;
}

bool regroup(const Program& program, std::int64_t group, Chain& chain) {
  const Interleaving& interleaving = program.interleaving;
  const auto stages = static_cast<std::int64_t>(chain.stages.size());
  const bool is_group = std::ranges::any_of(interleaving.groups, [&](const MicrobatchGroup& each) {
    return each.microbatches == group && each.most_stages >= stages;
  });
  if (!is_group || group > largest_group(program, chain)) return false;
  const std::int64_t latency = latency_around(program, chain);
  chain.time += interleaving.wait_around(latency, group, chain.period) -
                interleaving.wait_around(latency, chain.group, chain.period);
  chain.group = group;
  return true;
}

}  // namespace tangram::chain
