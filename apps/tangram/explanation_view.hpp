// An explanation for people and for programs. Goes in: the plan and its explanation. Comes out: text of at most 100
// columns, or tangram.explanation/1.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tangram/planner/explain.hpp"
#include "terminal.hpp"

namespace tangram::app {

[[nodiscard]] std::string explanation_for_people(const plan::LaunchPlan& plan, const planner::Explanation& explanation,
                                                 const Terminal& terminal);

[[nodiscard]] nlohmann::ordered_json explanation_json(const plan::LaunchPlan& plan,
                                                      const planner::Explanation& explanation);

}  // namespace tangram::app
