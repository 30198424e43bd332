// A comparison for people, for programs and for a browser. Goes in: the comparison. Comes out: text of at most 100
// columns, tangram.comparison/1, or one HTML file that needs nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tangram/planner/compare.hpp"
#include "tangram/runtime/runtime.hpp"
#include "terminal.hpp"

namespace tangram::app {

[[nodiscard]] std::string comparison_for_people(const planner::Comparison& comparison, const Terminal& terminal);

/// ", as Megatron-LM runs them"; empty where times are of no runtime in particular.
[[nodiscard]] std::string as_run_by(runtime::Target target);

/// Members of tangram.comparison/1, without schema and status: {fleet, model, target, tangram {...}, planners
/// [{planner, mode, ratio, iteration_s, gpus, cost_per_mtoken, planning_s, effort {...}, reported {...}, usable {...},
/// lacks, notes}], ablation [{forbidden, used, iteration_s, slower}]}. `ratio`: its time over ours; null where none of
/// its plans runs.
[[nodiscard]] nlohmann::ordered_json comparison_json(const planner::Comparison& comparison);

/// Of what a formula claims; "-" where it has no words for the plan.
[[nodiscard]] std::string claim_text(const std::optional<double>& seconds);

/// A page for browsers that needs nothing else and has no script.
[[nodiscard]] std::string comparison_html(const planner::Comparison& comparison);

}  // namespace tangram::app
