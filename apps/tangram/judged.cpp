#include "judged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planning.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::app {

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

Diagnostic own_mistake(std::string code, const std::string& message) {
  return problem(ErrorKind::kInternal, std::move(code), "the plan does not pass its check: " + message,
                 "this is a bug of tangram; please report it with the input files");
}

}  // namespace

plan::CheckReport judge_file(const plan::LaunchPlan& plan) {
  plan::CheckReport report = plan::check(plan);
  add_simulation(plan, FlopsPerSecond(0), report);
  return report;
}

plan::CheckReport judge_file(const plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model* model) {
  plan::CheckReport report = plan::check(plan, fleet, model);
  add_simulation(plan, fleet_peak(fleet, plan.model.job.precision), report);
  return report;
}

Expected<std::string> judged_text(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model) {
  std::string text = plan::write_plan(plan);
  Diagnostics bugs;
  if (const auto read = plan::read_plan(text, "the plan"); !read) {
    for (const Diagnostic& d : read.error()) bugs.push_back(own_mistake(d.code, d.pointer + ": " + d.message));
  } else {
    for (const plan::Violation& v : judge_file(*read, fleet, &model).violations) {
      bugs.push_back(own_mistake(v.code, v.where + ": " + v.message));
    }
  }
  if (!bugs.empty()) return fail(std::move(bugs));
  return text;
}

Diagnostics mistakes_in(const plan::LaunchPlan& plan, const std::string& file) {
  const bool intact = !plan.plan_id.empty() && plan.plan_id == plan::plan_digest(plan);
  const bool other_version = plan.provenance.version != TANGRAM_VERSION;  // its digest does not guard provenance
  Diagnostics mistakes;
  for (const plan::Violation& v : judge_file(plan).violations) {
    if (intact && (is_figure(v) || (other_version && v.code == "provenance-impossible"))) continue;
    Diagnostic& mistake = mistakes.emplace_back(problem(
        ErrorKind::kInput, v.code, fmt::format("the plan does not pass its check: {}: {}", v.where, v.message)));
    mistake.where.file = file;
  }
  if (!mistakes.empty()) mistakes.back().hint = "give the plan as it was written, or plan anew";
  return mistakes;
}

}  // namespace tangram::app
