#include "tangram/plan/assemble.hpp"
#include "target_rules.hpp"

namespace tangram::plan {

std::vector<TargetVerdict> target_verdicts(const LaunchPlan& plan) {
  return {Rules("generic").verdict(), megatron_verdict(plan), flagscale_verdict(plan), mimo_verdict(plan)};
}

}  // namespace tangram::plan
