#include "random_program.hpp"

#include <algorithm>
#include <map>

#include "support/random.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::tests {

namespace {

using chain::Program;
using prune::Candidate;
using testing::pick;

bool chance(std::mt19937_64& random, int percent) { return pick(random, 1, 100) <= percent; }

void add_options(Program& program, std::mt19937_64& random, const Flavour& flavour) {
  const int classes = static_cast<int>(program.inventory.size());
  for (int k = 0; k < classes; ++k) {
    for (int units = 1; units <= program.inventory[static_cast<std::size_t>(k)]; units *= 2) {
      for (int i = 0; i <= flavour.twins; ++i) program.options.push_back({{{k, units}}, program.keys++});
    }
  }
  if (!flavour.mixed) return;
  for (int k = 0; k + 1 < classes; ++k) {
    if (chance(random, 50)) program.options.push_back({{{k, 1}, {k + 1, 1}}, program.keys++});
  }
}

// Enough for some of the units.
void add_spend_limit(Program& program, std::mt19937_64& random) {
  std::int64_t all = 0;
  for (const int units : program.inventory) {
    program.unit_spend.push_back(pick(random, 0, 9));
    all += program.unit_spend.back() * units;
  }
  program.most_spend = all * pick(random, 20, 110) / 100;
}

// Some options weigh nothing.
void add_placement_limits(Program& program, std::mt19937_64& random) {
  const int limits = pick(random, 1, 3);
  for (int i = 0; i < limits; ++i) program.placement.push_back(pick(random, 1, 6));
  for (chain::Option& option : program.options) {
    if (chance(random, 30)) continue;
    for (int i = 0; i < limits; ++i) option.weights.push_back(pick(random, 0, 3));
  }
}

// Multiplies the prices between classes of two halves of the fleet.
void part_classes(Program& program, std::mt19937_64& random) {
  std::vector<int> half;
  for (std::size_t k = 0; k < program.inventory.size(); ++k) half.push_back(pick(random, 0, 1));
  const int factor = pick(random, 5, 200);
  for (const chain::Option& from : program.options) {
    for (const chain::Option& to : program.options) {
      if (half[static_cast<std::size_t>(from.uses.front().island_class)] ==
          half[static_cast<std::size_t>(to.uses.front().island_class)]) {
        continue;
      }
      for (Grid<chain::Price>& of_kind : program.prices) {
        chain::Price& price = of_kind(from.key, to.key);
        price.latency = (price.latency + 1) * factor;
        price.occupancy = price.latency;
      }
    }
  }
}

bool same_uses(const chain::Option& a, const chain::Option& b) {
  return std::equal(
      a.uses.begin(), a.uses.end(), b.uses.begin(), b.uses.end(),
      [](const chain::Use& x, const chain::Use& y) { return x.island_class == y.island_class && x.units == y.units; });
}

// `coarse` times a scale, and something in between.
std::int64_t fine(std::mt19937_64& random, std::int64_t coarse, int scale) {
  return coarse * scale + (scale > 1 ? pick(random, 0, scale - 1) : 0);
}

std::vector<Candidate> random_frontier(std::mt19937_64& random, const Flavour& flavour, int scale, int blocks,
                                       int units) {
  std::vector<Candidate> all;
  const int count = pick(random, 0, 3);
  for (int i = 0; i < count; ++i) {
    Candidate c;
    c.T = fine(random, std::max(1, blocks * pick(random, 6, 16) / units), scale);
    c.F = c.T * pick(random, 10, 60) / 100;
    c.A = c.T + (flavour.heavy_sync && chance(random, 50) ? fine(random, pick(random, 0, 60), scale) : 0);
    c.o = fine(random, pick(random, 0, 9), scale);
    c.n_max = flavour.tight_memory ? pick(random, 1, 7) : 100;
    c.source = i;
    all.push_back(c);
  }
  return prune::pareto(all);
}

}  // namespace

chain::Program random_program(std::mt19937_64& random, const Flavour& flavour) {
  Program program;
  // Small numbers make ties, large ones show bounds that are a little off.
  const int scale = chance(random, 50) ? 1 : 1000;
  program.blocks = pick(random, 1, flavour.most_blocks);
  program.microbatches = pick(random, 1, flavour.most_microbatches);
  const int classes = pick(random, 1, flavour.most_classes);
  for (int k = 0; k < classes; ++k) program.inventory.push_back(pick(random, 1, flavour.most_units));
  if (flavour.spend_limit) add_spend_limit(program, random);
  add_options(program, random, flavour);
  if (flavour.placement) add_placement_limits(program, random);

  // Half of the problems have uniform blocks: slices of equal length and ends share a signature.
  const bool uniform = chance(random, 50);
  program.signature = {program.blocks + 1, program.blocks + 1, -1};
  std::map<std::vector<int>, int> ids;
  std::vector<int> length;
  for (int first = 0; first < program.blocks; ++first) {
    for (int last = first + 1; last <= program.blocks; ++last) {
      const std::vector<int> kind =
          uniform ? std::vector<int>{last - first, first == 0, last == program.blocks} : std::vector<int>{first, last};
      const auto [entry, created] = ids.try_emplace(kind, program.signatures);
      if (created) {
        ++program.signatures;
        length.push_back(last - first);
      }
      program.signature(first, last) = entry->second;
    }
  }
  program.frontiers = {program.options.size(), program.signatures};
  for (std::size_t i = 0; i < program.options.size(); ++i) {
    int units = 0;
    for (const chain::Use& use : program.options[i].uses) units += use.units;
    const bool is_twin = i > 0 && same_uses(program.options[i - 1], program.options[i]);
    for (int s = 0; s < program.signatures; ++s) {
      const bool repeat = is_twin && chance(random, 80);
      program.frontiers(i, s) =
          repeat ? program.frontiers(i - 1, s) : random_frontier(random, flavour, scale, at(length, s), units);
    }
  }
  program.prices.assign(static_cast<std::size_t>(pick(random, 1, 2)), {program.keys, program.keys});
  const int last_kind = static_cast<int>(program.prices.size()) - 1;
  for (int cut = 0; cut <= program.blocks; ++cut) program.cut_kind.push_back(pick(random, 0, last_kind));
  const int slowest = flavour.slow_links ? pick(random, 0, flavour.twins > 0 ? 12 : 30) : 0;
  for (Grid<chain::Price>& of_kind : program.prices) {
    for (chain::Price& price : of_kind) {
      price.latency = fine(random, pick(random, 0, slowest), scale);
      price.occupancy = price.latency * pick(random, 0, 100) / 100;
      if (flavour.placement && chance(random, 20)) price = chain::Price::none();
    }
  }
  if (flavour.far_apart) part_classes(program, random);
  return program;
}

chain::Program random_hops(std::mt19937_64& random, int keys, std::int64_t period) {
  Program program;
  program.blocks = 2;
  program.microbatches = pick(random, 2, 12);
  program.keys = keys;
  program.prices.emplace_back(keys, keys);
  program.cut_kind.assign(3, 0);
  const int longest = pick(random, 0, static_cast<int>(period));
  for (chain::Price& price : program.prices.front()) {
    const int latency = pick(random, 0, longest);
    price = {latency, chance(random, 5) ? period + 1 : latency};
  }
  return program;
}

prune::Candidate random_plan(std::mt19937_64& random, std::int64_t period) {
  Candidate plan;
  plan.T = pick(random, 1, static_cast<int>(period));
  plan.F = plan.T * pick(random, 10, 60) / 100;
  plan.A = plan.T + (chance(random, 50) ? pick(random, 0, 3 * static_cast<int>(period)) : 0);
  plan.o = pick(random, 0, 5);
  plan.n_max = 100;
  return plan;
}

}  // namespace tangram::tests
