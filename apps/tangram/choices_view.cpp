#include "choices_view.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "table.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/simulate/simulate.hpp"
#include "words.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, int> gpus_by_class(const plan::LaunchPlan& plan) {
  std::map<std::string, int> used;
  for (const plan::Rank& rank : plan.ranks) ++used[plan.island(rank.island).island_class];
  return used;
}

std::string money(double dollars, int digits) { return dollars > 0 ? fmt::format("{:.{}f}", dollars, digits) : "-"; }

std::string used_text(const plan::LaunchPlan& plan) {
  std::vector<std::string> parts;
  for (const auto& [name, gpus] : gpus_by_class(plan)) parts.push_back(fmt::format("{} x {}", gpus, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Row and GPUs: "plan-03-16gpus.json".
std::string file_of(std::size_t row, const plan::LaunchPlan& plan) {
  return fmt::format("plan-{:02}-{}gpus.json", row + 1, plan.ranks.size());
}

}  // namespace

std::string choices_for_people(const planner::Choices& choices, bool named, const Terminal& terminal) {
  std::vector<Column> columns{{"tokens/s", true}, {"iteration", true}, {"GPUs", true},
                              {"$/hour", true},   {"$/Mtoken", true},  {"runs on", false, 20}};
  if (named) columns.push_back({"plan", false});
  Table table(columns);
  for (std::size_t i = 0; i < choices.plans.size(); ++i) {
    const plan::LaunchPlan& plan = choices.plans[i];
    const plan::Predicted& p = plan.predicted;
    std::vector<Cell> row{{thousands(static_cast<std::int64_t>(p.tokens_per_s))},
                          {people_time(to_seconds(p.iteration))},
                          {thousands(static_cast<std::int64_t>(plan.ranks.size()))},
                          {money(simulate::dollars_per_hour(plan), 2)},
                          {money(p.cost_per_mtoken, 3)},
                          {used_text(plan)}};
    if (named) row.push_back({file_of(i, plan)});
    table.add(std::move(row));
  }
  std::string out = table.render(terminal);
  out += "\nTimes are simulated. No row is as good as another in time, money and GPUs";
  out += choices.finished ? ".\n" : "; not all searches finished.\n";
  const double limit = choices.plans.empty() ? 0 : choices.plans.front().provenance.time_limit;
  if (limit > 0) out += labelled(terminal, "note", time_limit_text(limit));
  return out;
}

std::string choices_json(const planner::Choices& choices, bool named) {
  const std::vector<plan::LaunchPlan>& plans = choices.plans;
  Json out;
  out["schema"] = "tangram.choices/1";
  if (!plans.empty()) {
    out["fleet"] = plans.front().fleet_name;
    out["model"] = plans.front().model.name;
    if (const double limit = plans.front().provenance.time_limit; limit > 0) out["time_limit_s"] = limit;
  }
  out["finished"] = choices.finished;
  out["choices"] = Json::array();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const plan::LaunchPlan& plan = plans[i];
    const plan::Predicted& p = plan.predicted;
    const double dollars = simulate::dollars_per_hour(plan);
    Json choice;
    choice["gpus"] = plan.ranks.size();
    choice["dollars_per_hour"] = dollars > 0 ? Json(dollars) : Json(nullptr);
    choice["iteration_s"] = to_seconds(p.iteration);
    choice["tokens_per_s"] = p.tokens_per_s;
    choice["cost_per_mtoken"] = dollars > 0 ? Json(p.cost_per_mtoken) : Json(nullptr);
    choice["used"] = gpus_by_class(plan);
    choice["plan"] = named ? Json(file_of(i, plan)) : Json(nullptr);
    out["choices"].push_back(std::move(choice));
  }
  return io::write_canonical(out);
}

Expected<void> write_choices(const planner::Choices& choices, const std::string& json, io::OutputFolder& folder) {
  if (auto added = folder.add("choices.json", json); !added) return added;
  for (std::size_t i = 0; i < choices.plans.size(); ++i) {
    plan::LaunchPlan plan = choices.plans[i];  // writing gives it its digest
    if (auto added = folder.add(file_of(i, plan), plan::write_plan(plan)); !added) return added;
  }
  return folder.commit();
}

}  // namespace tangram::app
