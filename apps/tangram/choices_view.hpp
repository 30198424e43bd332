// The list of plans that are worth a choice. Goes in: plans, fastest first. Comes out: a table for people, JSON, or a
// folder with the list and a plan file for each row.
#pragma once

#include <string>
#include <vector>

#include "tangram/io/folder.hpp"
#include "tangram/planner/choices.hpp"
#include "terminal.hpp"

namespace tangram::app {

/// Throughput, GPUs and money of each, and what they run on; `named`: with the names of their files.
[[nodiscard]] std::string choices_for_people(const planner::Choices& choices, bool named, const Terminal& terminal);

/// tangram.choices/1: {schema, fleet, model, finished, choices [{gpus, dollars_per_hour, iteration_s, tokens_per_s,
/// cost_per_mtoken, used {class: GPUs}, plan}]}; dollars are null where a price is not known, and so is `plan`, the
/// name of a file, where none is written.
[[nodiscard]] std::string choices_json(const planner::Choices& choices, bool named);

/// choices.json, and the plans by the names that it gives them.
[[nodiscard]] Expected<void> write_choices(const planner::Choices& choices, const std::string& json,
                                           io::OutputFolder& folder);

}  // namespace tangram::app
