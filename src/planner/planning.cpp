#include "planning.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "options.hpp"
#include "prediction.hpp"
#include "put_off.hpp"
#include "runtime_look.hpp"
#include "tangram/base/at.hpp"
#include "tangram/compose/target.hpp"
#include "tangram/model/split.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/zero_bubble.hpp"
#include "tangram/planner/search_cache.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::planner {

namespace {

/// All plans of both schedules are simulated behind the searches, several times each.
constexpr double kShareOfSearches = 0.75;

Deadline deadline_of_searches(const Deadline& whole) {
  if (whole.seconds() == 0) return whole;
  const Deadline share = Deadline::in(whole.seconds() * kShareOfSearches);
  return Deadline([whole, share] { return share.has_passed() || whole.has_passed(); }, whole.seconds());
}

std::int64_t spent_by(const compose::Composition& composition, compose::Currency currency,
                      const cluster::IslandHierarchy& hierarchy) {
  if (currency == compose::Currency::kGpus) return objective::gpus_of(composition);
  return objective::rate_of(composition, hierarchy).value();
}

}  // namespace

Planning::Planning(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                   const compose::ProgressCallback& progress)
    : fleet_(fleet),
      model_(model),
      options_(options),
      progress_(progress),
      hierarchy_(cluster::find_islands(fleet, options.island_tolerance)),
      enumerator_(parallelizer::make_enumerator(model, options.search.profiles)),
      parallelizers_(options.parallelizers),
      zero_bubble_deadline_(deadline_of_searches(options.search.deadline)) {
  if (parallelizers_.empty()) parallelizers_.push_back(enumerator_.get());
}

compose::SearchResult Planning::search(const compose::SearchOptions& limits) const {
  return wants_zero_bubble(options_) ? search_zero_bubble(limits) : search_once(limits);
}

compose::SearchResult Planning::search_once(const compose::SearchOptions& limits) const {
  if (options_.cache != nullptr) {
    return options_.cache->search({options_.target, model_, hierarchy_, parallelizers_, limits}, progress_);
  }
  return compose::search_target(options_.target, model_, hierarchy_, parallelizers_, limits, progress_);
}

// What is best under 1F1B is looked at, too, with its weight gradients put off: what is taken is then no slower. By
// closed form nothing under zero bubble is slower than under 1F1B, so that the best of the one cuts the search for the
// other.
compose::SearchResult Planning::search_zero_bubble(compose::SearchOptions limits) const {
  limits.schedule.reset();
  compose::SearchResult whole = search_once(limits);
  const bool is_limited = limits.incumbent != Nanoseconds::max();
  if (whole.best.empty() && !is_limited) return whole;
  if (!whole.best.empty()) {
    limits.incumbent = std::min(limits.incumbent, whole.best.front().closed_form + Nanoseconds(1));
  }
  limits.schedule = runtime::Schedule::kZeroBubble;
  limits.deadline = zero_bubble_deadline_;
  compose::SearchResult found = search_once(limits);
  found.add_effort_of(whole);
  for (const compose::Composition& composition : whole.best) {
    found.timed.push_back({composition.closed_form, composition});
  }
  std::ranges::move(whole.timed, std::back_inserter(found.timed));
  if (found.best.empty() && !whole.best.empty()) {  // its labels or its time were spent
    found.best = std::move(whole.best);
    found.search_bound = found.relaxed_bound;
    found.infeasible.clear();
  }
  return found;
}

objective::RequestResult Planning::search_best() const {
  compose::SearchOptions limits = options_.search;
  limits.timed = options_.request.objective == objective::Objective::kThroughput;
  return objective::search_request(
      options_.request, model_, hierarchy_, limits, [this](const compose::SearchOptions& each) { return search(each); },
      [this](const compose::Composition& plan) { return simulated_time(plan); });
}

objective::ParetoPlans Planning::search_choices(std::size_t most) const {
  return objective::pareto_plans(
      options_.request, model_, hierarchy_, options_.search, most,
      [this](const compose::SearchOptions& each) { return search(each); },
      [this](const compose::Composition& plan) { return simulated_time(plan); });
}

ensemble::EnsembleSearch Planning::search_ensemble(const compose::SearchOptions& limits,
                                                   std::int64_t microbatch) const {
  if (options_.pipelines == Pipelines::kAny) {
    return ensemble::search_ensemble(model_, hierarchy_, parallelizers_, limits, progress_);
  }
  model::Model model = model_;
  model.job.microbatch = microbatch;
  return ensemble::search_ensemble(model, hierarchy_, parallelizers_, limits, progress_,
                                   ensemble::EnsembleEffort::kLook);
}

std::optional<plan::LaunchPlan> Planning::assemble(const compose::Composition& composition) const {
  return scheduled(plan::assemble(composition, fleet_, level_at(composition.level), model_, options_.search.profiles,
                                  options_.near, options_.target));
}

std::optional<plan::LaunchPlan> Planning::assemble(const compose::Ensemble& ensemble) const {
  return scheduled(plan::assemble(ensemble, fleet_, level_at(ensemble.level), model_, options_.search.profiles));
}

std::optional<plan::LaunchPlan> Planning::scheduled(plan::LaunchPlan plan) const {
  if (!wants_zero_bubble(options_)) return plan;
  if (!plan::put_off_weight_gradients(plan)) return std::nullopt;
  choose_put_off(plan);
  return plan;
}

PlanOptions Planning::no_dearer_than(const compose::Composition& taken) const {
  const objective::Request& request = options_.request;
  PlanOptions options = options_;
  if (request.objective != objective::Objective::kThroughput) {
    const bool counts_gpus = request.objective == objective::Objective::kGpus;
    const auto currency = counts_gpus ? compose::Currency::kGpus : compose::Currency::kMicroDollarsPerHour;
    options.search.spend = {currency, spent_by(taken, currency, hierarchy_)};
  } else if (request.budget) {
    options.search.spend = {compose::Currency::kMicroDollarsPerHour, request.budget->value()};
  }
  return options;
}

bool Planning::is_affordable(const compose::Composition& composition) const {
  const auto& limit = options_.search.spend;
  return !limit || spent_by(composition, limit->currency, hierarchy_) <= limit->most;
}

std::optional<Nanoseconds> Planning::simulated_time(const compose::Composition& composition) const {
  const auto candidate = assemble(composition);
  if (!candidate || !reasons_against(*candidate, options_.target).empty()) return std::nullopt;
  const simulate::Result result = simulate::simulate(simulate::schedule_of(*candidate));
  return result.deadlock ? std::nullopt : std::optional(result.iteration);
}

const cluster::IslandLevel& Planning::level_at(int level) const { return at(hierarchy_.levels, level); }

bool looks_at_colocated(const PlanOptions& options, const model::Model& model) {
  const bool asked_for_time = options.request.objective == objective::Objective::kThroughput &&
                              !options.request.budget && !options.search.spend;
  const bool any_plan = options.target == runtime::Target::kGeneric && !options.search.schedule &&
                        options.search.placement == compose::EncoderPlacement::kAny && !options.search.lifted;
  const bool built_in = std::ranges::all_of(options.parallelizers, [](const auto* p) { return p->info().built_in; });
  return options.look_at_colocated && asked_for_time && any_plan && built_in && !options.choose &&
         options.near == nullptr && model::encoder_blocks(model) > 0 && model::why_not_split(model).empty();
}

PlanOptions for_colocated(PlanOptions options, Nanoseconds closed_form) {
  options.search.placement = compose::EncoderPlacement::kColocated;
  options.search.incumbent = closed_form;
  options.look_at_runtimes = false;
  options.pipelines = Pipelines::kEqual;
  return options;
}

void make_searches(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                   const compose::ProgressCallback& progress) {
  if (const auto own = as_run(model, options)) return make_searches(fleet, own->model(), own->options(), progress);
  if (!model.job.free_options.empty()) {
    const ForModel chosen(choose_options(fleet, model, options, progress), options);
    return make_searches(fleet, chosen.model(), chosen.options(), progress);
  }
  const Planning planning(fleet, model, options, progress);
  const compose::SearchResult found = planning.search_best().found;
  if (found.best.empty()) return;
  if (looks_at_colocated(options, model)) {
    make_searches(fleet, model, for_colocated(options, found.best.front().closed_form), progress);
  }
  const std::vector<compose::Composition> near = found.shortlist();
  const PlanOptions looks = planning.no_dearer_than(near.front());
  if (looks_at_runtimes(options, fleet)) {
    static_cast<void>(look_at_runtimes(near, fleet, model, looks, progress));
  }
}

}  // namespace tangram::planner
