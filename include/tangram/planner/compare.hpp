// Our plan beside those of other planners. Goes in: fleet, model, options, names of planners, plans given. Comes out:
// our plan and theirs, all judged by one simulator and one memory model, what each searched, and what our
// techniques bring one by one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tangram/baseline/baseline.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::planner {

struct ComparedPlanner {
  std::string name;
  std::string mode;  ///< faithful, repaired; placement: our own search, encoders placed as the name says; given
  std::string_view summary;
  std::vector<std::string> lacks;
  baseline::Effort effort;
  baseline::Verdict verdict;
  std::vector<std::string> notes;
  double planning_s = 0;  ///< CPU seconds; of a given plan 0

  /// Of the plan that runs; infinite where none does.
  [[nodiscard]] double iteration_s() const;
};

/// Our search without some techniques.
struct AblationStep {
  std::vector<std::string> forbidden;
  bool used = true;        ///< by our plan; where not, nothing was searched again
  double iteration_s = 0;  ///< 0: no plan fits
};

/// A planner's own cost formula, of plans that all run. None: it has no words for that plan.
struct FormulaLine {
  std::string planner;
  std::optional<double> its_plan;
  std::optional<double> ours;
  std::optional<double> ours_in_its_space;  ///< of our search without what the planner lacks
};

struct Comparison {
  plan::LaunchPlan ours;
  bool search_finished = false;
  double time_limit = 0;  ///< seconds that ended searches (PlanProvenance::time_limit); what comes later is left out
  double planning_s = 0;  ///< CPU seconds
  std::int64_t labels = 0;
  std::vector<ComparedPlanner> planners;
  std::vector<AblationStep> ablation;
  std::vector<FormulaLine> formulas;  ///< of the planners that have one and were asked, in the faithful mode

  [[nodiscard]] double iteration_s() const;
};

/// A plan from outside: what another program wrote, by the name of its file.
struct GivenPlan {
  std::string file;
  std::string text;
};

struct CompareOptions {
  PlanOptions plan;
  std::vector<std::string> planners;  ///< names that baseline::make_planner knows
  std::vector<baseline::Mode> modes;
  std::vector<compose::EncoderPlacement> placements;  ///< of encoders, for which we plan as well
  std::vector<GivenPlan> plans;                       ///< launch plans, or results of the others' own programs
  bool ablation = true;
};

/// Ours is planned before theirs and knows nothing of them. Execution options that the job leaves free are chosen for
/// ours, and all plans have them. Errors: as of make_plan.
[[nodiscard]] Expected<Comparison> compare(const cluster::Fleet& fleet, const model::Model& model,
                                           const CompareOptions& options,
                                           const compose::ProgressCallback& progress = {});

}  // namespace tangram::planner
