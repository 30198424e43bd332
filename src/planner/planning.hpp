// What the steps of planning share. Goes in: fleet, model and options. Comes out: islands, found once; searches, looked
// up where the options have a cache; and launch plans of what they found.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tangram/base/deadline.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/ensemble/ensemble.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::planner {

/// All that it is made of must outlive it.
class Planning {
 public:
  Planning(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
           const compose::ProgressCallback& progress);

  /// For the best plan by what is asked for.
  [[nodiscard]] objective::RequestResult search_best() const;
  /// By closed form alone, whatever is asked for.
  [[nodiscard]] compose::SearchResult search_by_time() const { return search(options_.search); }
  /// For plans that are worth a choice.
  [[nodiscard]] objective::ParetoPlans search_choices(std::size_t most) const;
  /// For pipelines that are not alike: with Pipelines::kAuto a look at microbatches of this size, that which is best
  /// for equal ones.
  [[nodiscard]] ensemble::EnsembleSearch search_ensemble(const compose::SearchOptions& limits,
                                                         std::int64_t microbatch) const;

  /// That of the searches; of several the one that was missed.
  [[nodiscard]] const Deadline& deadline() const {
    return zero_bubble_deadline_.is_missed() ? zero_bubble_deadline_ : options_.search.deadline;
  }

  /// The options for plans that are compared with this one, which was taken for what was asked: where that limits
  /// spending, they spend no more.
  [[nodiscard]] PlanOptions no_dearer_than(const compose::Composition& taken) const;

  /// Whether it spends no more than the options let it.
  [[nodiscard]] bool is_affordable(const compose::Composition& composition) const;

  /// nullopt: the target cannot run it, or it does not finish.
  [[nodiscard]] std::optional<Nanoseconds> simulated_time(const compose::Composition& composition) const;

  /// Under the schedule that is wanted; 1F1B, where the target leaves the choice. nullopt: no stage has memory for it.
  [[nodiscard]] std::optional<plan::LaunchPlan> assemble(const compose::Composition& composition) const;
  [[nodiscard]] std::optional<plan::LaunchPlan> assemble(const compose::Ensemble& ensemble) const;

 private:
  [[nodiscard]] compose::SearchResult search(const compose::SearchOptions& limits) const;
  [[nodiscard]] compose::SearchResult search_once(const compose::SearchOptions& limits) const;
  [[nodiscard]] compose::SearchResult search_zero_bubble(compose::SearchOptions limits) const;
  [[nodiscard]] std::optional<plan::LaunchPlan> scheduled(plan::LaunchPlan plan) const;
  [[nodiscard]] const cluster::IslandLevel& level_at(int level) const;

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  const PlanOptions& options_;
  const compose::ProgressCallback& progress_;
  cluster::IslandHierarchy hierarchy_;
  std::unique_ptr<parallelizer::Parallelizer> enumerator_;
  std::vector<const parallelizer::Parallelizer*> parallelizers_;
  Deadline zero_bubble_deadline_;  ///< of the second search: what is found is still to be simulated
};

[[nodiscard]] inline bool wants_zero_bubble(const PlanOptions& options) {
  return options.search.schedule == runtime::Schedule::kZeroBubble;
}

/// Whether a plan with colocated encoders is looked for beside those of any placement.
[[nodiscard]] bool looks_at_colocated(const PlanOptions& options, const model::Model& model);

/// Such a plan is planned with these: it is of interest where its closed form is smaller.
[[nodiscard]] PlanOptions for_colocated(PlanOptions options, Nanoseconds closed_form);

/// The searches that make_plan makes, and nothing else: for options.cache.
void make_searches(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                   const compose::ProgressCallback& progress);

}  // namespace tangram::planner
