// Mistakes put into a plan, or into its execution, on purpose. Goes in: a plan and a fault. Comes out: false where the
// plan has nothing that the fault could act on.
#pragma once

#include "rank.hpp"
#include "tangram/execute/verify.hpp"

namespace tangram::execute {

[[nodiscard]] bool inject(Fault fault, plan::LaunchPlan& plan, Misbehaviour& misbehaviour);

}  // namespace tangram::execute
