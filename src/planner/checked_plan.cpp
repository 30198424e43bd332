#include "tangram/planner/checked_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "prediction.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/version.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::planner {

namespace {

/// What follows from the cost model and from nothing else: it may be worked out otherwise today.
constexpr std::array kFigures{"cost-differs",        "sync-differs",        "usable-differs",     "memory-differs",
                              "memory-exceeded",     "boundary-latency",    "boundary-occupancy", "in-flight-low",
                              "iteration-too-short", "closed-form-differs", "prediction-differs", "simulation-differs",
                              "target-differs"};

bool is_figure(const plan::Violation& violation) {
  return std::ranges::find(kFigures, violation.code) != kFigures.end();
}

void add_simulation(const plan::LaunchPlan& plan, FlopsPerSecond fleet_peak, plan::CheckReport& report) {
  if (!report.followable) return;
  for (plan::Violation& violation : simulate::differences(plan, fleet_peak)) {
    report.violations.push_back(std::move(violation));
  }
}

}  // namespace

plan::CheckReport full_check(const plan::LaunchPlan& plan) {
  plan::CheckReport report = plan::check(plan);
  add_simulation(plan, FlopsPerSecond(0), report);
  return report;
}

plan::CheckReport full_check(const plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model* model) {
  plan::CheckReport report = plan::check(plan, fleet, model);
  add_simulation(plan, cost::fleet_peak(fleet, plan.model.job.precision), report);
  return report;
}

Expected<std::string> checked_text(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model) {
  std::string text = plan::write_plan(plan);
  Diagnostics bugs;
  if (const auto read = plan::read_plan(text, "the plan"); !read) {
    for (const Diagnostic& d : read.error()) bugs.push_back(check_failure(d.code, d.pointer, d.message));
  } else {
    bugs = bugs_of(full_check(*read, fleet, &model));
  }
  if (!bugs.empty()) return fail(std::move(bugs));
  return text;
}

Diagnostics mistakes_in(const plan::LaunchPlan& plan, const std::string& file) {
  const bool intact = !plan.plan_id.empty() && plan.plan_id == plan::plan_digest(plan);
  const bool other_version = plan.provenance.version != version();  // its digest does not guard provenance
  Diagnostics mistakes;
  for (const plan::Violation& v : full_check(plan).violations) {
    if (intact && (is_figure(v) || (other_version && v.code == "provenance-impossible"))) continue;
    Diagnostic& mistake = mistakes.emplace_back(problem(
        ErrorKind::kInput, v.code, fmt::format("the plan does not pass its check: {}: {}", v.where, v.message)));
    mistake.where.file = file;
  }
  if (!mistakes.empty()) mistakes.back().hint = "give the plan as it was written, or plan anew";
  return mistakes;
}

}  // namespace tangram::planner
