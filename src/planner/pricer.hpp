// Plans with other execution options than they have. Goes in: a plan and a job. Comes out: the same plan with that job,
// priced anew for the target.
#pragma once

#include <optional>
#include <utility>

#include "tangram/planner/plan.hpp"

namespace tangram::planner {

class Pricer {
 public:
  using Rank = std::pair<double, double>;  ///< rank_of

  /// Both must outlive it.
  Pricer(const cluster::Fleet& fleet, const PlanOptions& options) : fleet_(fleet), options_(options) {}

  /// nullopt: it does not fit, or the target refuses it.
  [[nodiscard]] std::optional<plan::LaunchPlan> priced(const plan::LaunchPlan& plan, const model::Job& job) const;
  [[nodiscard]] Rank rank(const plan::LaunchPlan& plan) const;

 private:
  const cluster::Fleet& fleet_;
  const PlanOptions& options_;
};

}  // namespace tangram::planner
