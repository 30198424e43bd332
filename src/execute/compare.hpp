// A finished run against one process: how far every gradient and weight is off, and what the differences mean.
#pragma once

#include "run.hpp"
#include "tangram/execute/verify.hpp"

namespace tangram::execute {

/// Fills the report's loss, worst gradient and weight, stages' worst gradients, and findings.
void compare(const Job& job, const Run& run, const Run& reference, Report& report);

}  // namespace tangram::execute
