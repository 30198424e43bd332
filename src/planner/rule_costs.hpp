// What the rules of a runtime cost. Goes in: a plan for the runtime. Comes out: the time of the best plan that the
// runtime could run if it did not have one of them, or none, simulated as it would run it then. Without one it is a
// look, as `runtime_look` is one: at plans of the same schedule, and where all stages have one set of degrees, at those
// as wide (tp, GPUs) as the plan's. So the rule costs at least that.
#pragma once

#include <optional>

#include "tangram/planner/plan.hpp"

namespace tangram::planner {

/// Of plans whose closed form is below that of the plan at hand; nullopt: there is none. One search over the cases of
/// the target that are looked at.
[[nodiscard]] std::optional<Nanoseconds> time_without(runtime::Rule rule, const plan::LaunchPlan& now,
                                                      const cluster::Fleet& fleet, const PlanOptions& options,
                                                      const compose::ProgressCallback& progress);

/// Likewise of all plans that no runtime's rules limit.
[[nodiscard]] std::optional<Nanoseconds> time_without_rules(const plan::LaunchPlan& now, const cluster::Fleet& fleet,
                                                            const PlanOptions& options,
                                                            const compose::ProgressCallback& progress);

}  // namespace tangram::planner
