// The whole flow of `plan`, without terminal or command line. Goes in: a fleet, a model and options. Comes out: the
// chosen launch plan, checked and simulated, or why there is none.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "tangram/compose/kept_searches.hpp"
#include "tangram/compose/objective.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/compose/target.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::app {

/// Which pipelines train the model beside each other.
enum class Pipelines : std::uint8_t {
  kEqual,  ///< alike in shapes, cuts and shares of the batch
  kAuto,   ///< also others, where a look is cheap: on small fleets
  kAny,    ///< also others, where nothing speaks against them
};

struct PlanningOptions {
  double island_tolerance = 0.10;
  compose::SearchOptions search;
  compose::Target target = compose::Target::kGeneric;
  compose::Wish wish;
  Pipelines pipelines = Pipelines::kEqual;
  std::vector<const parallelizer::Parallelizer*> parallelizers;  ///< frontiers are the union; empty: the enumerator
  compose::KeptSearches* kept = nullptr;   ///< searches are looked up and kept there; those for unequal pipelines not
  const plan::LaunchPlan* near = nullptr;  ///< GPUs keep the work they have in it where that costs nothing
  /// Index of the simulated plan to take; the last argument is that of the best. Empty: the best.
  std::function<std::size_t(const std::vector<plan::LaunchPlan>&, std::size_t)> choose;
};

struct PlannedResult {
  plan::LaunchPlan plan;
  std::size_t candidates = 0;    ///< compositions that were simulated
  std::size_t chosen = 0;        ///< index of the plan among them, in the order of the closed form; behind the last:
                                 ///< its pipelines are not alike
  bool search_finished = false;  ///< the label budget did not end it
  compose::SearchStatistics statistics;
  std::vector<parallelizer::Tally> parallelizers;  ///< what each did
  compose::Space space;
};

[[nodiscard]] std::string_view to_string(compose::Target target);

/// What plans are ranked by: less is better.
[[nodiscard]] double worth_of(const plan::LaunchPlan& plan, compose::Objective objective);

/// What the target says against the plan.
[[nodiscard]] std::vector<plan::TargetReason> reasons_against(const plan::LaunchPlan& plan, compose::Target target);

/// Adds what the simulator says of the whole. Fails on a schedule that cannot finish.
[[nodiscard]] Expected<void> predict(plan::LaunchPlan& plan, const cluster::Fleet& fleet);

/// Dense peak of all GPUs together.
[[nodiscard]] FlopsPerSecond fleet_peak(const cluster::Fleet& fleet, DType precision);

/// islands -> search -> for each of the best: assemble, simulate -> the one that suits the wish best -> check. Errors:
/// kInfeasible with the shortage or what the target refuses, kPlugin when a parallelizer failed, kInternal when the
/// judge rejects a plan (a bug).
[[nodiscard]] Expected<PlannedResult> make_plan(const cluster::Fleet& fleet, const model::Model& model,
                                                const PlanningOptions& options,
                                                const compose::ProgressCallback& progress = {});

/// The searches that make_plan makes, and nothing else: for options.kept.
void make_searches(const cluster::Fleet& fleet, const model::Model& model, const PlanningOptions& options,
                   const compose::ProgressCallback& progress = {});

struct Choices {
  std::vector<plan::LaunchPlan> plans;             ///< simulated, fastest first; never empty
  bool finished = false;                           ///< no budget of labels ended a search
  std::vector<parallelizer::Tally> parallelizers;  ///< what each did
};

/// Plans that are worth a choice (compose::pareto_plans). Errors: as of make_plan.
[[nodiscard]] Expected<Choices> make_choices(const cluster::Fleet& fleet, const model::Model& model,
                                             const PlanningOptions& options, std::size_t most,
                                             const compose::ProgressCallback& progress = {});

}  // namespace tangram::app
