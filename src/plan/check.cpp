#include "tangram/plan/check.hpp"

#include "findings.hpp"
#include "tangram/base/at.hpp"

namespace tangram::plan {

namespace {

void summarize(const LaunchPlan& plan, CheckReport& report) {
  report.ranks = static_cast<int>(plan.ranks.size());
  report.stages = static_cast<int>(plan.stages.size());
  for (const auto& boundary : plan.boundaries) report.transfers += static_cast<int>(boundary.transfers.size());
}

void find_tightest(const LaunchPlan& plan, const Recomputed& recomputed, CheckReport& report) {
  for (const auto& stage : plan.stages) {
    for (const auto& part : at(recomputed, stage.id)) {
      const double usable = part.predicted.usable_memory.as_double();
      const double use = usable > 0 ? part.predicted.peak_memory.as_double() / usable : 1.0;
      if (use > report.tightest_memory) {
        report.tightest_memory = use;
        report.tightest_stage = stage.id;
      }
    }
  }
}

CheckReport judge(const LaunchPlan& plan, Findings& findings, Recomputed& recomputed) {
  CheckReport report;
  summarize(plan, report);
  if (!plan.plan_id.empty() && plan.plan_id != plan_digest(plan)) {
    findings.add("plan-id", "plan", "plan_id is not the digest of the body: the file was changed by hand");
  }
  report.followable = check_references(plan, findings);
  if (!report.followable) return report;
  check_pipelines(plan, findings);
  check_interleaving(plan, findings);
  check_ranks(plan, findings);
  check_transfers(plan, findings);
  if (plan.colocated) check_colocated(plan, findings);
  recomputed = check_costs(plan, findings);
  report.closed_form = check_schedule(plan, recomputed, findings);
  find_tightest(plan, recomputed, report);
  check_provenance(plan, findings);
  // Before a plan has been simulated its verdicts are not there yet.
  if (plan.predicted.iteration > Nanoseconds(0)) check_targets(plan, findings);
  return report;
}

}  // namespace

CheckReport check(const LaunchPlan& plan) {
  Findings findings;
  Recomputed recomputed;
  CheckReport report = judge(plan, findings, recomputed);
  report.violations = std::move(findings).take();
  return report;
}

CheckReport check(const LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model* model) {
  Findings findings;
  Recomputed recomputed;
  CheckReport report = judge(plan, findings, recomputed);
  check_against(plan, fleet, model, findings);
  if (report.followable) check_crossing(plan, recomputed, fleet, findings);
  report.violations = std::move(findings).take();
  return report;
}

}  // namespace tangram::plan
