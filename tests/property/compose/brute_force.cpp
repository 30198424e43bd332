#include "brute_force.hpp"

#include <algorithm>

namespace tangram::tests {

namespace {

using compose::ChainStage;
using compose::Program;

std::int64_t hop(const Program& program, const std::vector<ChainStage>& stages, std::size_t s, bool occupancy) {
  const int from = program.options[static_cast<std::size_t>(stages[s].option)].key;
  const int to = program.options[static_cast<std::size_t>(stages[s + 1].option)].key;
  const auto kind = static_cast<std::size_t>(program.cut_kind[static_cast<std::size_t>(stages[s].last)]);
  const auto keys = static_cast<std::size_t>(program.keys);
  const compose::Price& price =
      program.prices[(kind * keys + static_cast<std::size_t>(from)) * keys + static_cast<std::size_t>(to)];
  return occupancy ? price.occupancy : price.latency;
}

// n_s >= n_t - 1 + (round trip over s..t) / P for every t >= s: the window of s covers every run that starts there.
bool holds(const Program& program, const std::vector<ChainStage>& stages, std::int64_t period) {
  const std::size_t count = stages.size();
  std::vector<std::int64_t> n(count, 1);
  for (std::size_t s = count; s-- > 0;) {
    if (stages[s].candidate.T > period) return false;
    if (s + 1 < count) {
      if (hop(program, stages, s, true) > period) return false;
      n[s] = n[s + 1] + 1;
      std::int64_t run = stages[s].candidate.T;
      for (std::size_t t = s + 1; t < count; ++t) {
        run += stages[t].candidate.T + 2 * hop(program, stages, t - 1, false);
        std::int64_t needed = n[t] - 1 + run / period;
        if (run % period != 0) ++needed;
        n[s] = std::max(n[s], needed);
      }
    }
    const std::int64_t in_flight = n[s] < program.microbatches ? n[s] : program.microbatches;
    if (in_flight > stages[s].candidate.n_max) return false;
  }
  return true;
}

void extend(const Program& program, std::vector<ChainStage>& stages, std::vector<int>& left, int first,
            BruteForceAnswer& answer) {
  if (first == program.blocks) {
    ++answer.chains;
    const std::optional<std::int64_t> time = closed_form(program, stages);
    if (time && (!answer.time || *time < *answer.time)) answer.time = time;
    return;
  }
  for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
    const auto& uses = program.options[static_cast<std::size_t>(option)].uses;
    bool fits = true;
    for (const compose::Use& use : uses) fits = fits && use.units <= left[static_cast<std::size_t>(use.island_class)];
    if (!fits) continue;
    for (const compose::Use& use : uses) left[static_cast<std::size_t>(use.island_class)] -= use.units;
    for (int last = first + 1; last <= program.blocks; ++last) {
      for (const auto& candidate : program.frontier(option, program.signature_of(first, last))) {
        stages.push_back({option, first, last, candidate});
        extend(program, stages, left, last, answer);
        stages.pop_back();
      }
    }
    for (const compose::Use& use : uses) left[static_cast<std::size_t>(use.island_class)] += use.units;
  }
}

}  // namespace

std::optional<std::int64_t> closed_form(const Program& program, const std::vector<ChainStage>& stages) {
  std::int64_t latency = 0;
  std::int64_t slowest_step = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    latency += stages[s].candidate.T;
    if (s + 1 < stages.size()) latency += 2 * hop(program, stages, s, false);
    slowest_step = std::max(slowest_step, stages[s].candidate.o);
  }
  // Stage 0 drains last; a synchronisation hides under the backward passes and hops before stage 0 is done.
  std::int64_t tail = 0;
  std::int64_t hidden = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    tail = std::max(tail, stages[s].candidate.A - stages[s].candidate.T - hidden);
    hidden += stages[s].candidate.T - stages[s].candidate.F;
    if (s + 1 < stages.size()) hidden += hop(program, stages, s, false);
  }
  for (std::int64_t period = 1; period <= latency + 100; ++period) {
    if (holds(program, stages, period)) return latency + tail + slowest_step + (program.microbatches - 1) * period;
  }
  return std::nullopt;
}

BruteForceAnswer brute_force(const Program& program) {
  BruteForceAnswer answer;
  std::vector<ChainStage> stages;
  std::vector<int> left = program.inventory;
  extend(program, stages, left, 0, answer);
  return answer;
}

}  // namespace tangram::tests
