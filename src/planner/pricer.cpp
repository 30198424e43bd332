#include "pricer.hpp"

#include "prediction.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::planner {

std::optional<plan::LaunchPlan> Pricer::priced(const plan::LaunchPlan& plan, const model::Job& job) const {
  plan::LaunchPlan variant = plan;
  variant.model.job = job;
  const evolve::RefitOptions how{options_.island_tolerance, options_.search.profiles};
  evolve::Refit refit = evolve::refit(variant, fleet_, variant.model, how);
  plan::LaunchPlan* const now = refit.fitting();
  if (now == nullptr || !reasons_against(*now, options_.target).empty()) return std::nullopt;
  price_for(options_.target, *now);
  if (!predict(*now, fleet_, options_)) return std::nullopt;
  return std::move(*now);
}

Pricer::Rank Pricer::rank(const plan::LaunchPlan& plan) const { return rank_of(plan, options_.request.objective); }

}  // namespace tangram::planner
