// Where a plan comes from. Goes in: a plan, and the searches that it was chosen from. Comes out: its provenance:
// program, inputs, space, proofs and bounds, effort, and what a reader must know about them.
#pragma once

#include <string>

#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"
#include "tangram/objective/objective.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::planner {

void set_provenance(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model,
                    const objective::RequestResult& searched, const PlanOptions& options);

/// What a reader must know about the effort behind a plan; empty when it is simply the best. `deadline`: of its search.
[[nodiscard]] std::string note_of(const objective::RequestResult& searched, const PlanOptions& options,
                                  const Deadline& deadline, std::string why_chosen, const cluster::Fleet& fleet,
                                  const model::Model& model);

/// What a plan says where the time limit stopped its search; nothing where it did not. Called when all is searched.
void set_time_limit(plan::PlanProvenance& provenance, const Deadline& deadline);

/// Appends to a note.
void add_note(std::string& note, const std::string& text);

}  // namespace tangram::planner
