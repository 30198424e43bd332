// The comparison as one HTML file: two bar charts drawn as SVG, a table, styles of its own. No script, no address.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare_view.hpp"
#include "table.hpp"

namespace tangram::app {

namespace {

// Colours come in pairs: on paper, on a dark screen.
constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
:root {{ color-scheme: light dark; --ink: #1c2430; --dim: #5d6875; --line: #d9dee5; --page: #ffffff; --ours: #0b7a75; --theirs: #8fa3b8; --bad: #b3352b; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e8ecf1; --dim: #9aa7b5; --line: #323c48; --page: #14181d; --ours: #34c2ba; --theirs: #5c7085; --bad: #f0887f; }} }}
body {{ margin: 2.5rem auto; max-width: 62rem; padding: 0 1rem; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.6rem; margin: 0 0 .2rem; }} h2 {{ font-size: 1.15rem; margin: 2.2rem 0 .6rem; }}
p, caption {{ color: var(--dim); }} svg {{ width: 100%; height: auto; }}
svg text {{ font: 14px system-ui, sans-serif; fill: var(--ink); }} svg .value {{ font-variant-numeric: tabular-nums; }}
.ours {{ fill: var(--ours); }} .theirs {{ fill: var(--theirs); }} .none {{ fill: none; stroke: var(--bad); stroke-dasharray: 4 4; }}
.scroll {{ overflow-x: auto; }} table {{ border-collapse: collapse; width: 100%; font-size: .92rem; }}
th, td {{ padding: .4rem .6rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
</style></head><body>
)";

constexpr double kRow = 30;  // height of a bar with its gap
constexpr double kBar = 20;
constexpr double kLeft = 190;  // where bars begin
constexpr double kWidth = 900;
constexpr double kLongest = 560;  // bar

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Bar {
  std::string name;
  double value = 0;  ///< not finite: there is none
  std::string text;
  bool ours = false;
};

std::string chart(const std::vector<Bar>& bars, const std::string& description) {
  double longest = 0;
  for (const Bar& bar : bars) {
    if (std::isfinite(bar.value)) longest = std::max(longest, bar.value);
  }
  std::string out = fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth,
                                kRow * static_cast<double>(bars.size()), escaped(description));
  double y = 0;
  for (const Bar& bar : bars) {
    const bool there = std::isfinite(bar.value);
    const double length = there && longest > 0 ? std::max(2.0, kLongest * bar.value / longest) : kLongest;
    const double middle = y + 15;
    out +=
        fmt::format(R"(<text x="0" y="{}">{}</text><rect class="{}" x="{}" y="{}" width="{:.1f}" height="{}" rx="3"/>)",
                    middle, escaped(bar.name),
                    !there     ? "none"
                    : bar.ours ? "ours"
                               : "theirs",
                    kLeft, y, length, kBar);
    out += fmt::format(R"(<text class="value" x="{:.1f}" y="{}">{}</text>)", there ? kLeft + length + 8 : kLeft + 8,
                       middle, escaped(bar.text));
    y += kRow;
  }
  return out + "</svg>\n";
}

std::string label_of(const planner::ComparedPlanner& line) { return fmt::format("{}, {}", line.name, line.mode); }

std::vector<Bar> times(const planner::Comparison& comparison) {
  std::vector<Bar> bars{{"tangram", comparison.iteration_s(), people_time(comparison.iteration_s()), true}};
  for (const planner::ComparedPlanner& line : comparison.planners) {
    const double seconds = line.iteration_s();
    const std::string text = std::isfinite(seconds)
                                 ? fmt::format("{} ({:.2f}x)", people_time(seconds), seconds / comparison.iteration_s())
                                 : "none of its plans runs";
    bars.push_back({label_of(line), seconds, text, false});
  }
  return bars;
}

std::vector<Bar> ablation(const planner::Comparison& comparison) {
  std::vector<Bar> bars{{"everything", comparison.iteration_s(), people_time(comparison.iteration_s()), true}};
  for (const planner::AblationStep& step : comparison.ablation) {
    if (!step.used) continue;
    const std::string name =
        step.forbidden.size() == 1 ? fmt::format("without {}", step.forbidden.front()) : "without all of these";
    const bool fits = step.iteration_s > 0;
    bars.push_back(
        {name, fits ? step.iteration_s : std::numeric_limits<double>::infinity(),
         fits ? fmt::format("{} ({:.2f}x)", people_time(step.iteration_s), step.iteration_s / comparison.iteration_s())
              : "no plan fits",
         false});
  }
  return bars;
}

std::string row(const planner::ComparedPlanner& line) {
  const plan::LaunchPlan* plan = line.verdict.plan();
  const baseline::Candidate* reported = line.verdict.reported();
  const plan::Predicted none;
  const plan::Predicted& p = plan != nullptr ? plan->predicted : none;
  return fmt::format(
      R"(<tr><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}{}</td>)"
      R"(<td class="n">{}</td><td>{}</td><td>{}</td></tr>)"
      "\n",
      escaped(label_of(line)), plan != nullptr ? people_time(to_seconds(p.iteration)) : "-",
      plan != nullptr ? fmt::format("{}", plan->ranks.size()) : "-",
      p.cost_per_mtoken > 0 ? fmt::format("{:.3f}", p.cost_per_mtoken) : "-", thousands(line.effort.examined),
      line.effort.cut ? "+" : "", line.planning_s > 0 ? people_time(line.planning_s) : "-",
      reported == nullptr ? "no plan" : baseline::to_string(reported->label),
      escaped(fmt::format("{}", fmt::join(line.lacks, ", "))));
}

std::string table(const planner::Comparison& comparison) {
  const plan::Predicted& p = comparison.ours.predicted;
  std::string out =
      "<div class=\"scroll\"><table><tr><th>planner</th><th class=\"n\">iteration</th><th class=\"n\">GPUs</th>"
      "<th class=\"n\">$ per M tokens</th><th class=\"n\">plans examined</th><th class=\"n\">planning, CPU</th>"
      "<th>its first plan</th><th>outside its space</th></tr>\n";
  out += fmt::format(
      R"(<tr><td><b>tangram</b></td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td>)"
      R"(<td class="n">{}</td><td>ok</td><td></td></tr>)"
      "\n",
      people_time(to_seconds(p.iteration)), comparison.ours.ranks.size(),
      p.cost_per_mtoken > 0 ? fmt::format("{:.3f}", p.cost_per_mtoken) : "-", thousands(comparison.labels),
      people_time(comparison.planning_s));
  for (const planner::ComparedPlanner& line : comparison.planners) out += row(line);
  return out + "</table></div>\n";
}

std::string formulas(const planner::Comparison& comparison) {
  std::string out =
      "<table>\n<tr><th>by the formula of</th><th class=\"n\">its plan</th><th class=\"n\">ours</th>"
      "<th class=\"n\">ours in its space</th></tr>\n";
  for (const planner::FormulaLine& line : comparison.formulas) {
    out += fmt::format(R"(<tr><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>)"
                       "\n",
                       escaped(line.planner), claim_text(line.its_plan), claim_text(line.ours),
                       claim_text(line.ours_in_its_space));
  }
  return out + "</table>\n";
}

}  // namespace

std::string comparison_html(const planner::Comparison& comparison) {
  const plan::LaunchPlan& ours = comparison.ours;
  const std::string title = fmt::format("{} on {}", ours.model.name, ours.fleet_name);
  std::string out = fmt::format(fmt::runtime(kHead), fmt::arg("title", escaped(title)));
  out += fmt::format(
      "<h1>{}</h1>\n<p>{} GPUs, {} samples of {} tokens an iteration. All plans are judged by one simulator "
      "and one memory model{}.</p>\n",
      escaped(title), ours.fleet_gpus, thousands(ours.model.job.global_batch),
      thousands(ours.model.job.sequence_length), as_run_by(ours.runtime));
  out += "<h2>Time of an iteration</h2>\n" + chart(times(comparison), "iteration time of each planner's plan");
  if (!comparison.ablation.empty()) {
    out +=
        "<h2>What each technique brings</h2>\n" + chart(ablation(comparison), "iteration time without each technique");
  }
  out += "<h2>How they were found</h2>\n" + table(comparison);
  if (!comparison.formulas.empty()) out += "<h2>What their own formulas say</h2>\n" + formulas(comparison);
  return out + "</body></html>\n";
}

}  // namespace tangram::app
