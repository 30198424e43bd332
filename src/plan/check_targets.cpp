// What a plan says of the runtimes that can start it, judged anew.
#include <algorithm>
#include <string>

#include "findings.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::plan {

namespace {

std::string said(const TargetVerdict& verdict) {
  if (verdict.ok) return "can run it";
  return "cannot run it" + (verdict.reasons.empty() ? "" : ": " + verdict.reasons.front().code);
}

/// The first rule of its own runtime that a plan breaks.
void check_own_runtime(const LaunchPlan& plan, const std::vector<TargetVerdict>& verdicts, Findings& findings) {
  const std::string_view name = to_string(plan.runtime);
  const auto own = std::ranges::find(verdicts, name, &TargetVerdict::target);
  if (own == verdicts.end() || own->ok) return;
  findings.add("runtime-refuses", "execution",
               "the plan is for " + std::string(name) + ", which " + said(*own) +
                   (own->reasons.empty() ? "" : " (" + own->reasons.front().text + ")"));
}

}  // namespace

void check_targets(const LaunchPlan& plan, Findings& findings) {
  const auto real = target_verdicts(plan);
  check_own_runtime(plan, real, findings);
  for (const TargetVerdict& verdict : real) {
    const auto found = std::ranges::find(plan.targets, verdict.target, &TargetVerdict::target);
    if (found == plan.targets.end()) {
      findings.add("target-differs", "targets", "nothing is said of " + verdict.target);
    } else if (*found != verdict) {
      findings.add("target-differs", "targets",
                   "says that " + verdict.target + " " + said(*found) + "; judged anew, it " + said(verdict));
    }
  }
  for (const TargetVerdict& verdict : plan.targets) {
    if (std::ranges::find(real, verdict.target, &TargetVerdict::target) == real.end()) {
      findings.add("target-differs", "targets", "there is no target " + verdict.target);
    }
  }
}

}  // namespace tangram::plan
