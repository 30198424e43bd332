// The list of plans that are worth a choice. Goes in: plans, fastest first. Comes out: a table for people, or JSON.
#pragma once

#include <string>
#include <vector>

#include "tangram/plan/launch_plan.hpp"
#include "terminal.hpp"

namespace tangram::app {

/// Throughput, GPUs and money of each, and what they run on.
[[nodiscard]] std::string choices_for_people(const std::vector<plan::LaunchPlan>& plans, const Terminal& terminal);

/// tangram.choices/1: {schema, fleet, model, choices [{gpus, dollars_per_hour, iteration_s, tokens_per_s,
/// cost_per_mtoken, used {class: GPUs}}]}; dollars are null where a price is not known.
[[nodiscard]] std::string choices_json(const std::vector<plan::LaunchPlan>& plans);

}  // namespace tangram::app
