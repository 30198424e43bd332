// The groups of extensions that a state can take. Goes in: all groups of its position, its key, and what it leaves of
// the resources. Comes out: those for which it has the units, the room and the money, now and for the blocks that
// remain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuts.hpp"
#include "extensions.hpp"
#include "label_bounds.hpp"
#include "state_keys.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

/// A state whose labels are being extended.
struct OpenState {
  const StateKey& key;
  int left;  ///< blocks in front of its labels
  const Budget& budget;
};

class OpenGroups {
 public:
  OpenGroups(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query, StateKeys& keys,
             LabelBounds& bounds);

  [[nodiscard]] std::span<const Extension> extensions(int left, int depth) {
    return extensions_.of(left, depth).extensions;
  }
  /// From now on another state is asked about.
  void forget();
  /// By growth; the search notes in them where they lead to.
  [[nodiscard]] std::vector<ExtensionGroup>& of(const OpenState& state, int depth) {
    Groups& groups = at(by_depth_, depth);
    if (!groups.known) find(state, depth, groups);
    return groups.open;
  }

  void report(CutYield& cuts) const;

 private:
  struct Groups {
    bool known = false;
    std::vector<ExtensionGroup> open;
  };
  enum Cut : std::uint8_t { kByUnits, kBySpending, kByRemainder, kByPlacement, kCuts };

  void find(const OpenState& state, int depth, Groups& groups);
  [[nodiscard]] double least_ahead(const OpenState& state, int depth, const ExtensionGroup& group);

  const Program& program_;
  const LabelQuery& query_;
  StateKeys& keys_;
  LabelBounds& bounds_;
  Extensions extensions_;
  std::vector<Groups> by_depth_;
  CutList<kCuts> cuts_;
};

}  // namespace tangram::chain
