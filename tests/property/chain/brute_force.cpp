#include "brute_force.hpp"

#include <algorithm>
#include <functional>

#include "closed_form.hpp"
#include "tangram/base/at.hpp"
#include "tangram/chain/timetable.hpp"

namespace tangram::tests {

namespace {

using chain::ChainStage;
using chain::Program;

chain::Price hop_around(const Program& program, int last_option, int first_option) {
  return program.interleaving.around(at(program.options, last_option).key, at(program.options, first_option).key);
}

chain::Price hop(const Program& program, int cut, int from_option, int to_option) {
  const int from = at(program.options, from_option).key;
  const int to = at(program.options, to_option).key;
  return at(program.prices, at(program.cut_kind, cut))(from, to);
}

// A classic warm-up is a memory of as many microbatches as there are stages from here on.
std::vector<prune::Candidate> holding(const Program& program, std::vector<prune::Candidate> stages) {
  if (!program.classic_warmup) return stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].n_max = std::min(stages[s].n_max, static_cast<std::int64_t>(stages.size() - s));
  }
  return stages;
}

// `hops`: of interleaved chains with that from the last stage to the first.
std::optional<std::int64_t> form_of(const Program& program, const std::vector<prune::Candidate>& stages,
                                    const std::vector<chain::Price>& hops, std::int64_t below) {
  if (program.interleaving.chunks > 1) {
    return interleaved_form(stages, hops, program.interleaving, program.microbatches, below);
  }
  if (program.blocking_transfers) return blocking_form(stages, hops, program.microbatches, below);
  return closed_form(holding(program, stages), hops, program.microbatches, below);
}

struct Enumeration {
  const Program& program;
  std::int64_t below;
  std::vector<int> left;  // units
  std::vector<prune::Candidate> stages;
  std::vector<chain::Price> hops;
  const ChainFilter& is_allowed;
  std::vector<int> options;
  BruteForceAnswer answer;
  std::int64_t spent = 0;
  std::vector<int> ends = {};  // of the stages
  bool by_timetable = false;   // of all chains below, which stays

  [[nodiscard]] std::int64_t cost_of(const chain::Use& use) const {
    return program.unit_spend.empty() ? 0 : program.unit_spend[static_cast<std::size_t>(use.island_class)] * use.units;
  }

  [[nodiscard]] bool is_within_limits() const {
    std::vector<std::int64_t> sums(program.placement.size(), 0);
    for (const int option : options) {
      const std::vector<std::int64_t>& weights = program.options[static_cast<std::size_t>(option)].weights;
      for (std::size_t i = 0; i < weights.size(); ++i) sums[i] += weights[i];
    }
    return std::equal(sums.begin(), sums.end(), program.placement.begin(), std::less_equal<>());
  }

  void note_timetable() {
    chain::Chain chain;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      chain.stages.push_back({options[s], s == 0 ? 0 : ends[s - 1], ends[s], stages[s]});
    }
    if (!chain::evaluate(program, chain) || chain.time >= below) return;
    answer.time = std::min(answer.time.value_or(INT64_MAX), chain::timetable(program, chain));
  }

  // `latency` and `slowest` of the stages so far: whatever follows only adds to both.
  void extend(int first, int previous, std::int64_t latency, std::int64_t slowest) {
    if (latency + (program.microbatches - 1) * slowest >= below) return;
    if (first == program.blocks) {
      if (!is_within_limits() || (is_allowed && !is_allowed(options))) return;
      ++answer.chains;
      if (by_timetable) return note_timetable();
      if (program.interleaving.chunks > 1) hops.push_back(hop_around(program, options.back(), options.front()));
      const auto time = form_of(program, stages, hops, below);
      if (program.interleaving.chunks > 1) hops.pop_back();
      if (time) {
        answer.time = time;
        below = *time;
      }
      return;
    }
    for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
      const auto& uses = program.options[static_cast<std::size_t>(option)].uses;
      bool fits = true;
      for (const chain::Use& use : uses) fits = fits && use.units <= left[static_cast<std::size_t>(use.island_class)];
      const std::int64_t before = spent;
      for (const chain::Use& use : uses) spent += cost_of(use);
      if (!fits || spent > program.most_spend) {
        spent = before;
        continue;
      }
      for (const chain::Use& use : uses) left[static_cast<std::size_t>(use.island_class)] -= use.units;
      const bool meets = first == 0 || !hop(program, first, previous, option).is_none();
      if (first > 0) hops.push_back(hop(program, first, previous, option));
      options.push_back(option);
      for (int last = first + 1; last <= program.blocks && meets; ++last) {
        for (const auto& candidate : program.frontier(option, program.signature_of(first, last))) {
          stages.push_back(candidate);
          ends.push_back(last);
          extend(last, option, latency + candidate.T - candidate.W, std::max(slowest, candidate.T));
          ends.pop_back();
          stages.pop_back();
        }
      }
      options.pop_back();
      if (first > 0) hops.pop_back();
      for (const chain::Use& use : uses) left[static_cast<std::size_t>(use.island_class)] += use.units;
      spent = before;
    }
  }
};

}  // namespace

std::optional<std::int64_t> closed_form(const Program& program, const std::vector<ChainStage>& stages) {
  std::vector<prune::Candidate> candidates;
  std::vector<chain::Price> hops;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) hops.push_back(hop(program, stages[s].first, stages[s - 1].option, stages[s].option));
    candidates.push_back(stages[s].candidate);
  }
  if (program.interleaving.chunks > 1) {
    hops.push_back(hop_around(program, stages.back().option, stages.front().option));
  }
  return form_of(program, candidates, hops, INT64_MAX);
}

BruteForceAnswer brute_force(const Program& program, std::int64_t below, const ChainFilter& is_allowed) {
  Enumeration enumeration{program, below, program.inventory, {}, {}, is_allowed, {}, {}, 0};
  enumeration.extend(0, -1, 0, 0);
  return enumeration.answer;
}

std::optional<std::int64_t> fastest_timetable(const Program& program, std::int64_t below) {
  Enumeration enumeration{program, below, program.inventory, {}, {}, {}, {}, {}, 0};
  enumeration.by_timetable = true;
  enumeration.extend(0, -1, 0, 0);
  return enumeration.answer.time;
}

}  // namespace tangram::tests
