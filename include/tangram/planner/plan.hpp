// Planning with one call. Goes in: a fleet, a model with its job, and options. Comes out: the chosen launch plan,
// checked and simulated, or why there is none.
//
//   const auto fleet = cluster::read_fleet(text, "cluster.json");
//   const auto model = model::read_any_model(text, "model.yaml");
//   const auto planned = planner::make_plan(*fleet, *model, planner::usual_options(*fleet, *model));
//
// checked_plan.hpp gives the plan's text; choices.hpp lists plans, replan.hpp plans against one that runs already,
// explain.hpp and compare.hpp say how good it is, ahead.hpp and search_cache.hpp make the next call fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tangram/compose/search.hpp"
#include "tangram/discrepancy/discrepancy.hpp"
#include "tangram/objective/objective.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::planner {

class SearchCache;

/// On larger fleets a look at what runtimes make of a job takes as long as its plan: there is none.
inline constexpr int kMostGpusLookedAt = 256;

/// Which pipelines train the model beside each other.
enum class Pipelines : std::uint8_t {
  kEqual,  ///< alike in shapes, cuts and shares of the batch
  kAuto,   ///< also others, where a look is cheap: on small fleets
  kAny,    ///< also others, where nothing speaks against them
};

struct PlanOptions {
  double island_tolerance = 0.10;
  compose::SearchOptions search;
  runtime::Target target = runtime::Target::kGeneric;
  objective::Request request;
  Pipelines pipelines = Pipelines::kEqual;
  /// A plan for no runtime in particular says what each makes of the job (runs_on), and one whose blocks were not all
  /// measured, though profiles are given, what the best of those takes whose blocks were.
  bool look_at_runtimes = false;
  /// A plan for no runtime in particular may have colocated encoders, where that is faster.
  bool look_at_colocated = false;
  std::vector<const parallelizer::Parallelizer*> parallelizers;  ///< frontiers are the union; empty: the enumerator
  SearchCache* cache = nullptr;            ///< searches are looked up and stored there; those for unequal pipelines not
  const plan::LaunchPlan* near = nullptr;  ///< GPUs keep the work they have in it where that costs nothing
  /// Correct what is predicted of the plans that are simulated; the search, its bounds and limits go by predictions
  /// alone.
  const discrepancy::Discrepancy* own_runs = nullptr;
  /// Index of the simulated plan to take; the last argument is that of the best. Empty: the best.
  std::function<std::size_t(const std::vector<plan::LaunchPlan>&, std::size_t)> choose;
};

/// What `tangram plan` plans with where it is told nothing: effort by the size of the fleet and the depth of the model,
/// a look at unequal pipelines, at colocated encoders, and at what the runtimes make of the job.
[[nodiscard]] PlanOptions usual_options(const cluster::Fleet& fleet, const model::Model& model);

struct Planned {
  plan::LaunchPlan plan;
  std::size_t candidates = 0;    ///< compositions that were simulated
  std::size_t chosen = 0;        ///< index of the plan among them, in the order of the closed form; behind the last:
                                 ///< its pipelines are not alike
  bool search_finished = false;  ///< the label budget did not end it
  compose::SearchStatistics statistics;
  std::vector<parallelizer::Tally> parallelizers;  ///< what each did
  compose::Space space;
};

/// Money needs prices: with a budget, and for the least cost, kInput names the GPU types without one.
[[nodiscard]] Expected<void> check_prices(const objective::Request& request, const cluster::Fleet& fleet);
/// Whether the fleet has the GPU types that modules are to run on; no-gpus, kInput: it has not.
[[nodiscard]] Expected<void> check_constraints(const model::Model& model, const cluster::Fleet& fleet);

/// islands -> search -> for each of the best: assemble, simulate -> the one that is best by the objective -> check.
/// The plan's job is as the target runs it (plan::as_run_by).
/// Execution options that the job leaves free are chosen, of those that the target takes as arguments; the plan's job
/// has their values, and its provenance says what each gains. Errors: those of check_prices, kInfeasible with the
/// shortage or what the target refuses, kPlugin when a parallelizer failed, kIncomplete when the budget or the deadline
/// of the search ended before any plan was found, kInternal when the plan does not pass its check (a bug).
[[nodiscard]] Expected<Planned> make_plan(const cluster::Fleet& fleet, const model::Model& model,
                                          const PlanOptions& options, const compose::ProgressCallback& progress = {});

}  // namespace tangram::planner
