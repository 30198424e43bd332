// From a launch plan to a job that two cores run in seconds. Goes in: a plan whose structure holds. Comes out: the job,
// and what was left out of the plan. Every stage, every part, every degree but dp and cp, every boundary with its
// mismatch and every warm-up stay; replicas that repeat each other, pipelines that do, ends of sequences that all cp
// groups cut alike, blocks inside a run of equal ones and microbatches of the steady state are left out, and widths are
// small.
#pragma once

#include <set>
#include <vector>

#include "job.hpp"
#include "tangram/execute/verify.hpp"

namespace tangram::execute {

struct Reduction {
  Job job;
  std::vector<Shrunk> shrunk;
};

[[nodiscard]] Reduction reduce(const plan::LaunchPlan& plan);

/// Pipelines of the plan that are kept: of those that are alike in everything but place, two.
[[nodiscard]] std::vector<int> kept_pipelines(const plan::LaunchPlan& plan);

/// Blocks of the model that are kept: both ends of every stage and the blocks beyond them, and every change of type or
/// recompute inside one.
[[nodiscard]] std::vector<int> kept_blocks(const plan::LaunchPlan& plan, const std::vector<int>& pipelines);

/// Samples [first, last) of a microbatch that go through whole groups of replicas in every stage.
struct Window {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
/// Of a pipeline: of windows that are alike, two (one where that would be more than kMostRanks).
[[nodiscard]] std::vector<Window> kept_windows(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline);

/// Sequences end after one in so many parts, and ranks that work behind the end are left out: as many parts as every
/// cp of the plan can be divided into with two ranks left, and no group of experts cut.
[[nodiscard]] int context_folds(const plan::LaunchPlan& plan);

/// The small model: widths that every degree of the plan divides. `folds`: of context_folds().
[[nodiscard]] SmallModel small_model(const plan::LaunchPlan& plan, const std::vector<int>& blocks, int folds);

/// Colocated ones, with small blocks of their own; which samples have items is not yet said. `positions`: of the small
/// model.
[[nodiscard]] std::vector<JobEncoder> small_encoders(const plan::LaunchPlan& plan, int positions);

/// Blocks at both ends of a model, and on both sides of every change of type.
[[nodiscard]] std::set<int> ends_and_changes(const model::Model& model);

}  // namespace tangram::execute
