#include "choices.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "table.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/simulate/simulate.hpp"

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

}  // namespace

std::string choices_for_people(const std::vector<plan::LaunchPlan>& plans, const Terminal& terminal) {
  Table table({{"tokens/s", true},
               {"iteration", true},
               {"GPUs", true},
               {"$/hour", true},
               {"$/Mtoken", true},
               {"runs on", false, 20}});
  for (const plan::LaunchPlan& plan : plans) {
    const plan::Predicted& p = plan.predicted;
    table.add({{thousands(static_cast<std::int64_t>(p.tokens_per_s))},
               {people_time(to_seconds(p.iteration))},
               {thousands(static_cast<std::int64_t>(plan.ranks.size()))},
               {money(simulate::dollars_per_hour(plan), 2)},
               {money(p.cost_per_mtoken, 3)},
               {used_text(plan)}});
  }
  return table.render(terminal);
}

std::string choices_json(const std::vector<plan::LaunchPlan>& plans) {
  Json out;
  out["schema"] = "tangram.choices/1";
  if (!plans.empty()) {
    out["fleet"] = plans.front().fleet_name;
    out["model"] = plans.front().model.name;
  }
  out["choices"] = Json::array();
  for (const plan::LaunchPlan& plan : plans) {
    const plan::Predicted& p = plan.predicted;
    const double dollars = simulate::dollars_per_hour(plan);
    Json choice;
    choice["gpus"] = plan.ranks.size();
    choice["dollars_per_hour"] = dollars > 0 ? Json(dollars) : Json(nullptr);
    choice["iteration_s"] = to_seconds(p.iteration);
    choice["tokens_per_s"] = p.tokens_per_s;
    choice["cost_per_mtoken"] = dollars > 0 ? Json(p.cost_per_mtoken) : Json(nullptr);
    choice["used"] = gpus_by_class(plan);
    out["choices"].push_back(std::move(choice));
  }
  return io::write_canonical(out);
}

}  // namespace tangram::app
