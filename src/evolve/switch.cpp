#include "tangram/evolve/switch.hpp"

namespace tangram::evolve {

Switch switch_between(const plan::LaunchPlan& before, const plan::LaunchPlan& after, const cluster::Fleet* fleet) {
  Switch change{difference(before, after), {}, {}};
  if (!change.difference.same_model) return change;
  change.resharding = resharding(before, after, fleet);
  if (fleet != nullptr) change.time = resharding_time(*change.resharding, *fleet);
  return change;
}

}  // namespace tangram::evolve
