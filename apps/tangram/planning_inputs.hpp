// What a search starts from. Goes in: file names and settings. Comes out: fleet, model and profiles as the settings
// want them, and the options of the search that are numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settings.hpp"
#include "tangram/cluster/edits.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/model/model.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::app {

struct PlanningInputs {
  cluster::Fleet fleet;
  model::Model model;  ///< with batch, sequence and techniques of the settings
  cost::ProfileSet profiles;
};

/// All files, with the mistakes of all; the fleet with what --drop, --add and --set change in it.
[[nodiscard]] Expected<PlanningInputs> load_planning_inputs(const std::string& cluster, const std::string& model,
                                                            const Settings& settings, const cluster::Edits& edits = {});

/// Tolerance of the islands and effort of the search, where it is not set that of the fleet and the depth of the model.
/// Developers may switch off bounds and cuts of the search by name: TANGRAM_SEARCH_WITHOUT=knapsack,presolve. An
/// unknown name is a mistake, told with all that there are.
[[nodiscard]] Expected<planner::PlanOptions> plan_options(const Settings& settings, const cluster::Fleet& fleet,
                                                          const model::Model& model);

/// Why encoders of the model cannot be placed as the options say; `option` is the one that says it.
[[nodiscard]] std::optional<Diagnostic> placement_complaint(const planner::PlanOptions& options,
                                                            const model::Model& model, std::string_view option);

}  // namespace tangram::app
