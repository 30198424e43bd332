#include "closed_form.hpp"

#include <algorithm>
#include <array>

#include "tangram/base/assert.hpp"

namespace tangram::tests {

namespace {

using chain::Price;
using prune::Candidate;

constexpr std::size_t kMostStages = 32;

// n_s >= n_t - 1 + (round trip over s..t) / P for every t >= s: the window of s covers every run that starts there.
bool holds(std::span<const Candidate> stages, std::span<const Price> hops, std::int64_t microbatches,
           std::int64_t period) {
  std::array<std::int64_t, kMostStages> n{};
  for (std::size_t s = stages.size(); s-- > 0;) {
    n[s] = s + 1 < stages.size() ? n[s + 1] + 1 : 1;
    std::int64_t run = stages[s].T;
    for (std::size_t t = s + 1; t < stages.size(); ++t) {
      run += stages[t].T + 2 * hops[t - 1].latency;
      std::int64_t needed = n[t] - 1 + run / period;
      if (run % period != 0) ++needed;
      n[s] = std::max(n[s], needed);
    }
    const std::int64_t in_flight = n[s] < microbatches ? n[s] : microbatches;
    if (in_flight > stages[s].n_max) return false;
  }
  return true;
}

struct Fixed {
  std::int64_t latency = 0;  // of one microbatch, there and back, with weight gradients
  std::int64_t time = 0;     // of the iteration, without M - 1 periods
};

Fixed fixed_of(std::span<const Candidate> stages, std::span<const Price> hops) {
  std::int64_t latency = 0;
  std::int64_t passages = 0;
  std::int64_t slowest_step = 0;
  // Stage 0 drains last; a synchronisation, and weight gradients that are put off, hide under the backward passes and
  // hops before stage 0 is done.
  std::int64_t tail = 0;
  std::int64_t hidden = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    latency += stages[s].T;
    passages += stages[s].T - stages[s].W;
    slowest_step = std::max(slowest_step, stages[s].o);
    tail = std::max(tail, stages[s].A - stages[s].T + stages[s].W - hidden);
    hidden += stages[s].T - stages[s].W - stages[s].F;
    if (s + 1 == stages.size()) break;
    latency += 2 * hops[s].latency;
    passages += 2 * hops[s].latency;
    hidden += hops[s].latency;
  }
  return {latency, passages + tail + slowest_step};
}

}  // namespace

std::optional<std::int64_t> closed_form(std::span<const Candidate> stages, std::span<const Price> hops,
                                        std::int64_t microbatches, std::int64_t below) {
  TANGRAM_ASSERT(stages.size() <= kMostStages);
  const Fixed fixed = fixed_of(stages, hops);
  std::int64_t shortest = 1;
  for (const Candidate& stage : stages) shortest = std::max(shortest, stage.T);
  for (const Price& hop : hops) shortest = std::max(shortest, hop.occupancy);
  if (fixed.time + (microbatches - 1) * shortest >= below) return std::nullopt;
  // From the whole latency on, a longer period asks for no microbatch less.
  std::int64_t longest = std::max(fixed.latency, shortest);
  if (!holds(stages, hops, microbatches, longest)) return std::nullopt;
  // A longer period only relaxes every inequality, so that halving finds the first one that holds.
  while (shortest < longest) {
    const std::int64_t middle = (shortest + longest) / 2;
    if (holds(stages, hops, microbatches, middle)) {
      longest = middle;
    } else {
      shortest = middle + 1;
    }
  }
  const std::int64_t time = fixed.time + (microbatches - 1) * longest;
  if (time >= below) return std::nullopt;
  return time;
}

// A microbatch keeps a stage for its passes and for what it exchanges on both sides.
std::optional<std::int64_t> blocking_form(std::span<const Candidate> stages, std::span<const Price> hops,
                                          std::int64_t microbatches, std::int64_t below) {
  std::int64_t period = 1;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::int64_t kept = stages[s].T;
    if (s > 0) kept += hops[s - 1].latency;
    if (s + 1 < stages.size()) kept += hops[s].latency;
    period = std::max(period, kept);
    const auto held = std::min(microbatches, static_cast<std::int64_t>(stages.size() - s));
    if (held > stages[s].n_max) return std::nullopt;
  }
  const std::int64_t time = fixed_of(stages, hops).time + (microbatches - 1) * period;
  if (time >= below) return std::nullopt;
  return time;
}

namespace {

// P (n_s - n_t + 1) is no less than the round trip over s .. t, with what t stops for, where n_s - n_t = 2 (t - s).
std::int64_t interleaved_period(std::span<const Candidate> stages, std::span<const Price> hops, bool sends_block) {
  std::int64_t period = 1;
  for (const Price& hop : hops) period = std::max(period, hop.occupancy);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::int64_t trip = 0;
    for (std::size_t t = s; t < stages.size(); ++t) {
      trip += stages[t].T + (t > s ? 2 * hops[t - 1].latency : 0);
      const std::int64_t kept = trip + (sends_block ? hops[t].latency : 0);
      const auto periods = static_cast<std::int64_t>(2 * (t - s) + 1);
      period = std::max(period, (kept + periods - 1) / periods);
    }
  }
  return period;
}

bool holds_group(std::span<const Candidate> stages, std::int64_t group, std::int64_t chunks, std::int64_t passes) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto behind = static_cast<std::int64_t>(stages.size() - 1 - s);
    if (std::min(passes, 2 * behind + 1 + (chunks - 1) * group) > stages[s].n_max) return false;
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> interleaved_form(std::span<const Candidate> stages, std::span<const Price> hops,
                                             const chain::Interleaving& interleaving, std::int64_t passes,
                                             std::int64_t below) {
  if (stages.size() < 2 || hops.back().is_none()) return std::nullopt;
  const std::int64_t period = interleaved_period(stages, hops, interleaving.sends_block);
  const Fixed fixed = fixed_of(stages, hops.first(hops.size() - 1));
  const std::int64_t around = fixed.latency + 2 * hops.back().latency;
  std::optional<std::int64_t> best;
  for (const chain::MicrobatchGroup& group : interleaving.groups) {
    if (group.most_stages < static_cast<std::int64_t>(stages.size())) continue;
    if (!holds_group(stages, group.microbatches, interleaving.chunks, passes)) continue;
    const std::int64_t late = std::max<std::int64_t>(0, around - group.microbatches * period);
    const std::int64_t time = fixed.time + (passes - 1) * period + (interleaving.chunks - 1) * late;
    if (time < below && (!best || time < *best)) best = time;
  }
  return best;
}

}  // namespace tangram::tests
