// The comparison as a page: two bar charts and tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "compare_view.hpp"
#include "plan_sentences.hpp"
#include "table.hpp"
#include "tangram/picture/bar_chart.hpp"
#include "tangram/picture/page.hpp"

namespace tangram::app {

namespace {

using picture::Bar;
using picture::element;
using picture::Markup;
using picture::Paint;
using picture::section;
using picture::text;

std::string label_of(const planner::ComparedPlanner& line) { return fmt::format("{}, {}", line.name, line.mode); }

std::vector<Bar> times(const planner::Comparison& comparison) {
  std::vector<Bar> bars{{"tangram", comparison.iteration_s(), people_time(comparison.iteration_s()), Paint::kOurs}};
  for (const planner::ComparedPlanner& line : comparison.planners) {
    const double seconds = line.iteration_s();
    const std::string text = std::isfinite(seconds)
                                 ? fmt::format("{} ({:.2f}x)", people_time(seconds), seconds / comparison.iteration_s())
                                 : "none of its plans runs";
    bars.push_back({label_of(line), seconds, text, Paint::kTheirs});
  }
  return bars;
}

std::vector<Bar> ablation(const planner::Comparison& comparison) {
  std::vector<Bar> bars{{"everything", comparison.iteration_s(), people_time(comparison.iteration_s()), Paint::kOurs}};
  for (const planner::AblationStep& step : comparison.ablation) {
    if (!step.used) continue;
    const std::string name =
        step.forbidden.size() == 1 ? fmt::format("without {}", step.forbidden.front()) : "without all of these";
    const bool fits = step.iteration_s > 0;
    bars.push_back(
        {name, fits ? step.iteration_s : std::numeric_limits<double>::infinity(),
         fits ? fmt::format("{} ({:.2f}x)", people_time(step.iteration_s), step.iteration_s / comparison.iteration_s())
              : "no plan fits",
         Paint::kTheirs});
  }
  return bars;
}

std::string price_text(const plan::Predicted& predicted) {
  return predicted.cost_per_mtoken > 0 ? fmt::format("{:.3f}", predicted.cost_per_mtoken) : "-";
}

std::vector<Markup> row_of(const planner::ComparedPlanner& line) {
  const plan::LaunchPlan* plan = line.verdict.plan();
  const baseline::Candidate* reported = line.verdict.reported();
  return {text(label_of(line)),
          text(plan != nullptr ? people_time(to_seconds(plan->predicted.iteration)) : "-"),
          text(plan != nullptr ? fmt::format("{}", plan->ranks.size()) : "-"),
          text(plan != nullptr ? price_text(plan->predicted) : "-"),
          text(thousands(line.effort.examined) + (line.effort.cut ? "+" : "")),
          text(line.planning_s > 0 ? people_time(line.planning_s) : "-"),
          text(reported == nullptr ? "no plan" : baseline::to_string(reported->label)),
          text(fmt::format("{}", fmt::join(line.lacks, ", ")))};
}

Markup planners_table(const planner::Comparison& comparison) {
  const plan::Predicted& p = comparison.ours.predicted;
  std::vector<std::vector<Markup>> rows{{element("b", {}, "tangram"), text(people_time(to_seconds(p.iteration))),
                                         text(fmt::format("{}", comparison.ours.ranks.size())), text(price_text(p)),
                                         text(thousands(comparison.labels)), text(people_time(comparison.planning_s)),
                                         text("ok"), text("")}};
  for (const planner::ComparedPlanner& line : comparison.planners) rows.push_back(row_of(line));
  return picture::table({{"planner"},
                         {"iteration", true},
                         {"GPUs", true},
                         {"$ per M tokens", true},
                         {"plans examined", true},
                         {"planning, CPU", true},
                         {"its first plan"},
                         {"outside its space"}},
                        rows);
}

Markup formulas_table(const planner::Comparison& comparison) {
  std::vector<std::vector<Markup>> rows;
  for (const planner::FormulaLine& line : comparison.formulas) {
    rows.push_back({text(line.planner), text(claim_text(line.its_plan)), text(claim_text(line.ours)),
                    text(claim_text(line.ours_in_its_space))});
  }
  return picture::table({{"by the formula of"}, {"its plan", true}, {"ours", true}, {"ours in its space", true}}, rows);
}

/// Those that the planner chose for our plan; empty: none.
Markup options_of(const plan::LaunchPlan& ours) {
  const auto& options = ours.provenance.options;
  if (options.empty()) return {};
  return picture::paragraph(fmt::format("Tangram's plan runs with these execution options, which save of its time: {}.",
                                        options_line(options)));
}

Markup header_of(const planner::Comparison& comparison, const std::string& title) {
  const plan::LaunchPlan& ours = comparison.ours;
  return element(
      "header", {},
      element("h1", {}, title) +
          picture::paragraph(fmt::format("{} GPUs, {} samples of {} tokens an iteration. All plans are judged "
                                         "by one simulator and one memory model{}.",
                                         ours.fleet_gpus, thousands(ours.model.job.global_batch),
                                         thousands(ours.model.job.sequence_length), as_run_by(ours.runtime))) +
          options_of(ours));
}

}  // namespace

std::string comparison_html(const planner::Comparison& comparison) {
  picture::Page page;
  page.title = fmt::format("{} on {}", comparison.ours.model.name, comparison.ours.fleet_name);
  page.body = header_of(comparison, page.title);
  page.body +=
      section("Time of an iteration", picture::bar_chart(times(comparison), "iteration time of each planner's plan"));
  if (!comparison.ablation.empty()) {
    page.body += section("What each technique brings",
                         picture::bar_chart(ablation(comparison), "iteration time without each technique"));
  }
  page.body += section("How they were found", planners_table(comparison));
  if (!comparison.formulas.empty()) {
    page.body += section("What their own formulas say", formulas_table(comparison));
  }
  return picture::written(page);
}

}  // namespace tangram::app
