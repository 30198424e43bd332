// A decision about a plan that runs, for people and for programs. Goes in: the decision. Comes out: text of at most 100
// columns, or tangram.replan/1.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tangram/planner/replan.hpp"
#include "terminal.hpp"

namespace tangram::app {

[[nodiscard]] std::string replanned_for_people(const planner::Replanned& replanned, const Terminal& terminal);

[[nodiscard]] nlohmann::ordered_json replanned_json(const planner::Replanned& replanned);

}  // namespace tangram::app
