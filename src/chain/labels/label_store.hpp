// The states of every position, and in each the labels that no other beats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "beam.hpp"
#include "label.hpp"
#include "state_keys.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

/// A label where it stands: what dominance compares lies together.
struct HeldLabel {
  DominanceKey dominance_key;
  std::int32_t node = 0;
};

struct LabelState {
  StateKey key;
  std::vector<HeldLabel> labels;  ///< by latency
  std::size_t last_winner = 0;
};

struct LabelPosition {
  std::vector<LabelState> states;  ///< in order of creation, so that results never depend on hashing
  std::unordered_map<StateKey, int, StateKeyHash> index;
  Smallest bounds;  ///< of its labels, in a beam search

  /// The state of the key, a new one where there is none.
  [[nodiscard]] std::int32_t state_of(const StateKey& key);
};

class LabelStore {
 public:
  /// `dominance`: whether labels beat each other at all.
  LabelStore(const Program& program, const BoundaryPrices& hops, const LabelAlgebra& algebra, bool dominance);

  [[nodiscard]] LabelPosition& position(int left) { return at(positions_, left); }
  /// Whether no label of the state dominates the candidate, which then is one of them. `left`: blocks in front.
  [[nodiscard]] bool add(const HeldLabel& candidate, int left, LabelState& state);
  [[nodiscard]] std::int64_t dominated() const { return dominated_; }

 private:
  [[nodiscard]] bool add(const HeldLabel& candidate, const BoundaryPrices::LatencyGap& latency_gap, LabelState& state);
  [[nodiscard]] bool is_beaten(const HeldLabel& candidate, const BoundaryPrices::LatencyGap& latency_gap,
                               LabelState& state) const;
  void remove_beaten(const HeldLabel& candidate, const BoundaryPrices::LatencyGap& latency_gap,
                     std::vector<HeldLabel>& held);

  const BoundaryPrices& hops_;
  const LabelAlgebra& algebra_;
  const bool dominance_;
  std::vector<LabelPosition> positions_;  // by blocks left
  std::int64_t dominated_ = 0;
};

}  // namespace tangram::chain
