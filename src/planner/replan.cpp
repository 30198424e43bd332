#include "tangram/planner/replan.hpp"

#include <algorithm>
#include <iterator>

#include "planning.hpp"
#include "prediction.hpp"
#include "tangram/base/at.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::planner {

namespace {

constexpr int kLeastCandidates = 8;  // more to choose from than a plan for itself needs
constexpr double kNotable = 1.005;   // an iteration that takes longer by more is slower

class Replanner {
 public:
  Replanner(plan::LaunchPlan old, const cluster::Fleet& fleet, const model::Model& model, PlanOptions options,
            double min_gain)
      : fleet_(fleet),
        model_(model),
        old_model_(model::settled(model, old.model.job)),
        options_(replan_options(std::move(options))) {
    options_.search.schedule = schedule_for(old, options_);
    options_.target = target_for(old, options_);
    old_model_.job = plan::as_run_by(options_.target, old_model_.job);
    result_.old = std::move(old);
    result_.min_gain = min_gain;
    options_.near = &result_.old;
    options_.choose = [this](const auto& plans, std::size_t best) { return choose(plans, best); };
  }

  Expected<Replanned> run(const compose::ProgressCallback& progress) {
    if (auto priced = check_prices(options_.request, fleet_); !priced) return fail(std::move(priced.error()));
    assess_old();
    plan_colocated(progress);
    auto planned = make_plan(fleet_, model_, options_, progress);
    if (planned) {
      result_.search_finished = planned->search_finished;
      result_.parallelizers = std::move(planned->parallelizers);
      take(std::move(planned->plan));
    } else {
      if (fitting() == nullptr && beside_.empty()) return fail(std::move(planned.error()));
      decision_ = evolve::decide(old_cost(), candidates_of(beside_), result_.min_gain);
      take(fitting() != nullptr ? *fitting() : beside_.front());
    }
    result_.time_limit = options_.search.deadline.missed_seconds();
    return std::move(result_);
  }

 private:
  /// The old plan on the fleet of now, and why it cannot go on.
  void assess_old() {
    const evolve::RefitOptions options{options_.island_tolerance, options_.search.profiles};
    evolve::Refit refit = evolve::refit(result_.old, fleet_, old_model_, options);
    plan::LaunchPlan* const plan = refit.fitting();
    result_.fits = plan != nullptr && runs(*plan);
    result_.now = std::move(refit.plan);
    result_.gone = std::move(refit.gone);
    result_.incompatibilities = std::move(refit.incompatibilities);
    if (fitting() != nullptr) note_slowdown(*fitting());
    if (!result_.gone.empty() && result_.incompatibilities.empty()) look_for_spares(options);
  }

  /// Completes a refitted plan; false where it does not finish or its target refuses it.
  bool runs(plan::LaunchPlan& plan) {
    result_.refused = reasons_against(plan, options_.target);
    if (result_.refused.empty()) price_for(options_.target, plan);
    const auto done = predict(plan, fleet_, options_);
    if (!done) result_.deadlock = done.error().front();
    return result_.refused.empty() && done;
  }

  /// The old plan on the fleet of now, if it can go on.
  [[nodiscard]] const plan::LaunchPlan* fitting() const {
    return result_.fits && result_.now ? &*result_.now : nullptr;
  }

  void note_slowdown(const plan::LaunchPlan& now) {
    result_.slowdowns = evolve::slowdowns(result_.old, now, fleet_);
    const double factor = now.predicted.iteration.as_double() / result_.old.predicted.iteration.as_double();
    result_.slower = !result_.slowdowns.empty() || factor > kNotable;
  }

  void look_for_spares(const evolve::RefitOptions& options) {
    const auto repaired = evolve::with_spares(result_.old, result_.gone, fleet_);
    if (!repaired) return;
    evolve::Refit refit = evolve::refit(*repaired, fleet_, old_model_, options);
    plan::LaunchPlan* const plan = refit.fitting();
    if (plan == nullptr || !reasons_against(*plan, options_.target).empty()) return;
    price_for(options_.target, *plan);
    if (!predict(*plan, fleet_, options_)) return;
    plan->provenance.note = "the plan before, with other hosts in place of those that are gone";
    beside_.push_back(std::move(*plan));
    spares_ = true;
  }

  /// Where a plan that is made anew may have colocated encoders.
  void plan_colocated(const compose::ProgressCallback& progress) {
    PlanOptions options = options_;
    options.near = nullptr;
    options.choose = {};
    if (!looks_at_colocated(options, model_)) return;
    options = for_colocated(std::move(options), Nanoseconds::max());
    options.near = &result_.old;
    if (auto planned = make_plan(fleet_, model_, options, progress)) beside_.push_back(std::move(planned->plan));
  }

  [[nodiscard]] double cost_of(const plan::LaunchPlan& plan) const {
    return rank_of(plan, options_.request.objective).first;
  }
  [[nodiscard]] std::optional<double> old_cost() const {
    return fitting() != nullptr ? std::optional(cost_of(*fitting())) : std::nullopt;
  }
  [[nodiscard]] evolve::Candidate candidate_of(const plan::LaunchPlan& plan) const {
    return {cost_of(plan), evolve::count_roles(evolve::roles_of(result_.old), evolve::roles_of(plan)).moved()};
  }
  [[nodiscard]] std::vector<evolve::Candidate> candidates_of(const std::vector<plan::LaunchPlan>& plans) const {
    std::vector<evolve::Candidate> candidates;
    for (const plan::LaunchPlan& plan : plans) candidates.push_back(candidate_of(plan));
    return candidates;
  }

  /// Decides among the plans that were found and those beside them, which come last.
  std::size_t choose(const std::vector<plan::LaunchPlan>& plans, std::size_t best) {
    std::vector<evolve::Candidate> candidates = candidates_of(plans);
    found_ = candidates.size();
    std::ranges::copy(candidates_of(beside_), std::back_inserter(candidates));
    decision_ = evolve::decide(old_cost(), candidates, result_.min_gain);
    return decision_.change && *decision_.change < found_ ? *decision_.change : best;
  }

  void take(plan::LaunchPlan found) {
    result_.change = decision_.change.has_value();
    const bool beside = result_.change && *decision_.change >= found_;
    result_.spares = beside && spares_ && *decision_.change == found_;
    result_.next = beside ? std::move(at(beside_, *decision_.change - found_)) : std::move(found);
    result_.gain = result_.change ? decision_.gain : decision_.best_gain;
    result_.moves = evolve::switch_between(result_.old, result_.next, &fleet_);
  }

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  model::Model old_model_;  // as the target runs it, where options are free with those of the old plan
  PlanOptions options_;
  Replanned result_;
  std::vector<plan::LaunchPlan> beside_;  // the old one with spares, then one with colocated encoders
  bool spares_ = false;                   // whether the former is among them
  std::size_t found_ = 0;                 // plans of the search
  evolve::Decision decision_;
};

}  // namespace

PlanOptions replan_options(PlanOptions options) {
  options.search.top = std::max(options.search.top, kLeastCandidates);
  options.look_at_runtimes = false;
  return options;
}

Expected<Replanned> replan(plan::LaunchPlan old, const cluster::Fleet& fleet, const model::Model& model,
                           PlanOptions options, double min_gain, const compose::ProgressCallback& progress) {
  return Replanner(std::move(old), fleet, model, std::move(options), min_gain).run(progress);
}

}  // namespace tangram::planner
