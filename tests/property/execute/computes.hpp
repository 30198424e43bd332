// What random plans are held to.
#pragma once

#include "support/property.hpp"
#include "unit/execute/verified.hpp"

namespace tangram::execute::tiny {

/// The plan computes what one process computes.
inline void computes_as_one_process(const plan::LaunchPlan& plan) {
  const auto report = verify(plan);
  RC_ASSERT(report.has_value());
  RC_LOG() << listing(*report);
  RC_ASSERT(report->ok());
  RC_ASSERT(report->executed);
  RC_ASSERT(report->gradient.error <= kTolerance);
  RC_ASSERT(report->weight.error <= kTolerance);
}

}  // namespace tangram::execute::tiny
