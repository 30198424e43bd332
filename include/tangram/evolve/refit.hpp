// An old plan on the fleet as it is now. Goes in: the plan as it was written, today's fleet and job. Comes out: the
// same plan with today's times and memory, or why it cannot go on. GPUs are known by host name and number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/evolve/difference.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::evolve {

/// Why the plan cannot go on.
struct Incompatibility {
  /// Stable: "other-model", "other-job", "broken-chain", "unsupported", or that of a check's violation.
  std::string code;
  std::string where;  ///< "stage 3"; empty: the plan
  std::string text;
};

struct Refit {
  /// Priced as the planner prices its own, warm-ups as they were; predictions of the whole are left to the simulator.
  /// None where GPUs are gone or the job is another.
  std::optional<plan::LaunchPlan> plan;
  std::vector<Gpu> gone;  ///< GPUs of the plan that the fleet has not, by host and number
  std::vector<Incompatibility> incompatibilities;
  [[nodiscard]] bool fits() const { return plan.has_value() && incompatibilities.empty(); }
  /// The plan, if it fits.
  [[nodiscard]] plan::LaunchPlan* fitting() { return plan && incompatibilities.empty() ? &*plan : nullptr; }
};

struct RefitOptions {
  double island_tolerance = 0.10;
  const cost::ProfileSet* profiles = nullptr;  ///< must outlive the call
};

/// A part runs at the pace of its slowest GPU: where its hosts are no longer alike, all of them count as the least of
/// them. On the fleet it was made for, a plan is priced as it was.
[[nodiscard]] Refit refit(const plan::LaunchPlan& old, const cluster::Fleet& fleet, const model::Model& model,
                          const RefitOptions& options);

/// The plan with other hosts in place of those of `gone`: hosts it does not use, whose GPUs are of the same type in the
/// same places, in the fleet's order. None where there are not enough of them.
[[nodiscard]] std::optional<plan::LaunchPlan> with_spares(const plan::LaunchPlan& old, const std::vector<Gpu>& gone,
                                                          const cluster::Fleet& fleet);

/// A stage that takes longer than it was written to.
struct Slowdown {
  int stage = 0;
  double factor = 1;               ///< forward and backward, now over then
  std::vector<std::string> hosts;  ///< those that hold the others of their part back; empty: all are slower
  bool operator==(const Slowdown&) const = default;
};

/// Stages whose passes take more than `tolerance` longer, worst first.
[[nodiscard]] std::vector<Slowdown> slowdowns(const plan::LaunchPlan& old, const plan::LaunchPlan& now,
                                              const cluster::Fleet& fleet, double tolerance = 0.01);

}  // namespace tangram::evolve
