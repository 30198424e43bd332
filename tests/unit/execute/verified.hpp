// Plans verified, for tests of whole verifications.
#pragma once

#include <string>

#include "support/catch.hpp"
#include "tangram/execute/verify.hpp"

namespace tangram::execute::tiny {

inline std::string listing(const Report& report) {
  std::string text;
  for (const Finding& f : report.findings) text += f.code + " at " + f.where + ": " + f.message + "\n";
  return text;
}

inline Report verified(const plan::LaunchPlan& plan, const VerifyOptions& options = {}) {
  auto report = verify(plan, options);
  REQUIRE(report);
  return *std::move(report);
}

/// The plan computes what one process computes.
inline Report check_good(const plan::LaunchPlan& plan) {
  Report report = verified(plan);
  INFO(listing(report));
  CHECK(report.ok());
  CHECK(report.executed);
  CHECK(report.gradient.error <= kTolerance);
  CHECK(report.weight.error <= kTolerance);
  CHECK(report.loss > 0);
  return report;
}

}  // namespace tangram::execute::tiny
