#include "open_groups.hpp"

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

bool fits(const Option& option, const Budget& budget) {
  return std::all_of(option.uses.begin(), option.uses.end(),
                     [&](const Use& use) { return use.units <= at(budget.left, use.island_class); });
}

}  // namespace

OpenGroups::OpenGroups(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query,
                       StateKeys& keys, LabelBounds& bounds)
    : program_(ground.program),
      query_(query),
      keys_(keys),
      bounds_(bounds),
      extensions_(ground, bound, query),
      by_depth_(static_cast<std::size_t>(bound.depths()) + 1) {}

void OpenGroups::forget() {
  for (Groups& groups : by_depth_) groups.known = false;
}

void OpenGroups::find(const OpenState& state, int depth, Groups& groups) {
  groups.known = true;
  groups.open.clear();
  const Budget& budget = state.budget;
  for (const ExtensionGroup& group : extensions_.of(state.left, depth).groups) {
    const Option& option = at(program_.options, group.option);
    const bool is_ruled_out = cuts_.any([&](std::size_t cut) {
      switch (cut) {
        case kByUnits: return !fits(option, budget);
        case kByPlacement: return !keys_.has_room(state.key, group.option);
        case kBySpending: return !program_.unit_spend.empty() && program_.spend_of(option) > budget.left.back();
        default: return !bounds_.is_coverable(state.left - group.blocks, depth + 1, group.option, budget);
      }
    });
    if (is_ruled_out) continue;
    const double ahead = least_ahead(state, depth, group);
    if (ahead == kNoCompletion) continue;
    groups.open.push_back(group);
    groups.open.back().ahead = ahead;
  }
}

// A beam search is not worth it.
double OpenGroups::least_ahead(const OpenState& state, int depth, const ExtensionGroup& group) {
  if (query_.beam > 0 || group.blocks == state.left || !bounds_.tuning().cuts.knapsack) return 0;
  return bounds_.least_ahead(state.left, depth, group.option, group.blocks, state.budget);
}

void OpenGroups::report(CutYield& cuts) const {
  cuts.groups_by_units = cuts_.removed(kByUnits) + cuts_.removed(kByPlacement);
  cuts.groups_by_spending = cuts_.removed(kBySpending);
  cuts.groups_by_remainder = cuts_.removed(kByRemainder);
}

}  // namespace tangram::chain
