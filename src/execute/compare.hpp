// A finished run against one process: how far every gradient and weight is off, and what the differences mean.
#pragma once

#include <vector>

#include "run.hpp"
#include "tangram/execute/verify.hpp"

namespace tangram::execute {

/// What the first stages read of encoders, and gave back, that is not what one process reads and gives: the causes of
/// whatever else differs. Empty: nothing, or there are no encoders.
[[nodiscard]] std::vector<Finding> handover_findings(const Job& job, const Run& run, const Run& reference);

/// Fills the report's loss, worst gradient and weight, stages' worst gradients, and findings.
void compare(const Job& job, const Run& run, const Run& reference, Report& report);

}  // namespace tangram::execute
