#include "label_store.hpp"

#include <algorithm>

namespace tangram::chain {

namespace {

std::int64_t latency_of(const HeldLabel& label) { return label.dominance_key.latency; }

}  // namespace

std::int32_t LabelPosition::state_of(const StateKey& key) {
  const auto [entry, is_new] = index.try_emplace(key, static_cast<int>(states.size()));
  if (is_new) states.push_back({key, {}, 0});
  return entry->second;
}

LabelStore::LabelStore(const Program& program, const BoundaryPrices& hops, const LabelAlgebra& algebra, bool dominance)
    : hops_(hops), algebra_(algebra), dominance_(dominance), positions_(static_cast<std::size_t>(program.blocks) + 1) {}

bool LabelStore::add(const HeldLabel& candidate, int left, LabelState& state) {
  if (dominance_) return add(candidate, hops_.latency_gap_at(left), state);
  state.labels.push_back(candidate);
  return true;
}

// Labels ascend in latency: only those before the candidate can dominate it, and it only those behind.
bool LabelStore::add(const HeldLabel& candidate, const BoundaryPrices::LatencyGap& latency_gap, LabelState& state) {
  if (is_beaten(candidate, latency_gap, state)) {
    ++dominated_;
    return false;
  }
  std::vector<HeldLabel>& held = state.labels;
  remove_beaten(candidate, latency_gap, held);
  held.insert(std::ranges::upper_bound(held, latency_of(candidate), {}, latency_of), candidate);
  return true;
}

// Candidates in a row tend to lose to the same label: it is asked first.
bool LabelStore::is_beaten(const HeldLabel& candidate, const BoundaryPrices::LatencyGap& latency_gap,
                           LabelState& state) const {
  const std::vector<HeldLabel>& held = state.labels;
  const auto beats = [&](const HeldLabel& other) {
    return algebra_.dominates(other.dominance_key, candidate.dominance_key, latency_gap);
  };
  if (state.last_winner < held.size() && beats(held[state.last_winner])) return true;
  const auto place = std::ranges::upper_bound(held, latency_of(candidate), {}, latency_of);
  const auto winner = std::find_if(held.begin(), place, beats);
  if (winner == place) return false;
  state.last_winner = static_cast<std::size_t>(winner - held.begin());
  return true;
}

// Those of equal latency before the candidate's place are beaten, too, if they are no better in anything.
void LabelStore::remove_beaten(const HeldLabel& candidate, const BoundaryPrices::LatencyGap& latency_gap,
                               std::vector<HeldLabel>& held) {
  const auto first = std::ranges::lower_bound(held, latency_of(candidate), {}, latency_of);
  const auto kept = std::remove_if(first, held.end(), [&](const HeldLabel& other) {
    return algebra_.dominates(candidate.dominance_key, other.dominance_key, latency_gap);
  });
  dominated_ += held.end() - kept;
  held.erase(kept, held.end());
}

}  // namespace tangram::chain
