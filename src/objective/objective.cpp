#include "tangram/objective/objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cheapest_plan.hpp"
#include "fewest_gpus.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/relax/state_memory.hpp"
#include "walk.hpp"

namespace tangram::objective {

namespace {

constexpr std::array kObjectives{ObjectiveName{"throughput", Objective::kThroughput},
                                 ObjectiveName{"cost", Objective::kCost}, ObjectiveName{"gpus", Objective::kGpus}};

constexpr const char* kTooSlow = "throughput-out-of-reach";  // the code of a diagnostic

constexpr double kRoundingOfGpus = 1e-9;  // of sums in doubles, relative

const cluster::IslandClass& class_of(const Composition& composition, const compose::PartChoice& part,
                                     const cluster::IslandHierarchy& hierarchy) {
  const cluster::IslandLevel& level = hierarchy.levels[static_cast<std::size_t>(composition.level)];
  return level.classes[static_cast<std::size_t>(part.island_class)];
}

std::int64_t budget_of(const Request& request) { return request.budget ? request.budget->value() : kNoLimit; }

Nanoseconds longest_of(const Request& request) { return request.longest_iteration.value_or(Nanoseconds::max()); }

// What the fastest plan takes, which does not make the time; unless one may that the search did not come to.
Diagnostics too_slow(const Request& request, const SearchResult& found, Nanoseconds least) {
  const double wanted = to_seconds(longest_of(request));
  const double fastest = to_seconds(least);
  if (!found.finished && found.relaxed_bound <= longest_of(request)) {
    return {problem(ErrorKind::kIncomplete, "budget-spent",
                    fmt::format("no plan was found that takes {:.4g} s an iteration or less, the fastest takes {:.4g} "
                                "s; whether there is one is open",
                                wanted, fastest),
                    "give the search more with --time-budget, or lower --min-throughput")};
  }
  return {problem(ErrorKind::kInfeasible, kTooSlow,
                  fmt::format("no plan takes {:.4g} s an iteration or less; the fastest that was found takes {:.4g} s",
                              wanted, fastest),
                  "lower --min-throughput, raise --budget, or add GPUs")};
}

Diagnostics budget_too_small(const Request& request, std::string_view why = "") {
  return {problem(
      ErrorKind::kInfeasible, "budget-too-small",
      fmt::format("no plan runs on GPUs for {:.2f} $ an hour or less{}", request.budget->as_double() * 1e-6, why),
      "raise --budget, or find the cheapest plan per token with --objective cost")};
}

// No plan keeps the budget: is there any without it?
Diagnostics too_dear(const Request& request, Walk& walk) {
  SearchResult any = walk.step({});
  return any.best.empty() ? std::move(any.infeasible) : budget_too_small(request);
}

// What GPUs cost an hour that hold parameters, gradients and optimizer state, those first that hold most for a dollar.
// nullopt: all together do not, or a price is not known.
std::optional<double> least_rate(const model::Model& model, const cluster::IslandLevel& level) {
  std::vector<const cluster::IslandClass*> classes;
  for (const cluster::IslandClass& c : level.classes) {
    if (price_of(c).value() == 0 || c.device.usable() <= Bytes(0)) return std::nullopt;
    classes.push_back(&c);
  }
  std::ranges::sort(classes, {}, [](const cluster::IslandClass* c) {
    return price_of(*c).as_double() / c->device.usable().as_double();
  });
  double left = relax::least_state(model).as_double();
  double rate = 0;
  for (const cluster::IslandClass* c : classes) {
    const double gpus = std::min<double>(c->gpu_count(), left / c->device.usable().as_double());
    rate += gpus * price_of(*c).as_double();
    left -= gpus * c->device.usable().as_double();
  }
  if (left > 0) return std::nullopt;
  const auto cheaper = [](const cluster::IslandClass* a, const cluster::IslandClass* b) {
    return price_of(*a) < price_of(*b);
  };
  return std::max(rate * (1 - kRoundingOfGpus), price_of(**std::ranges::min_element(classes, cheaper)).as_double());
}

// A budget that cannot hold the model, before any search.
std::optional<Diagnostics> too_small(const Request& request, const model::Model& model,
                                     const cluster::IslandHierarchy& hierarchy) {
  if (!request.budget) return std::nullopt;
  const auto least = least_rate(model, hierarchy.levels.front());
  if (!least || request.budget->as_double() >= *least) return std::nullopt;
  return budget_too_small(request, fmt::format(": those that hold the model cost {:.2f} $", *least * 1e-6));
}

// Leaves those that take no longer, simulated. Returns what the fastest of all takes; nullopt: there is none.
std::optional<Nanoseconds> keep_within(Nanoseconds longest, const Walk& walk, SearchResult& found) {
  std::optional<Nanoseconds> least;
  const auto takes_longer = [&](const Composition& plan) {
    const auto shown = walk.show(plan);
    if (!shown) return true;
    least = std::min(least.value_or(shown->time), shown->time);
    return shown->time > longest;
  };
  found.optimal = found.optimal && !found.best.empty() && !takes_longer(found.best.front());
  std::erase_if(found.best, takes_longer);
  std::erase_if(found.timed, [&](const compose::TimedComposition& timed) { return takes_longer(timed.composition); });
  if (!found.best.empty() || found.timed.empty()) return least;
  for (const compose::TimedComposition& timed : found.timed) found.best.push_back(timed.composition);
  compose::keep_best(found.best, static_cast<int>(found.best.size()));
  return least;
}

// A limit on time does not cut this search: simulated, a plan may make a time that its closed form is far above.
RequestResult fastest(const Request& request, Walk& walk) {
  RequestResult result;
  result.found = walk.step({.limit = limit_of(Currency::kMicroDollarsPerHour, budget_of(request)), .timed = true});
  if (request.longest_iteration) {
    const std::optional<Nanoseconds> least = keep_within(*request.longest_iteration, walk, result.found);
    if (result.found.best.empty() && least) result.found.infeasible = too_slow(request, result.found, *least);
  }
  if (!result.found.best.empty()) {
    result.value = to_seconds(result.found.best.front().closed_form);
    result.bound = to_seconds(result.found.search_bound);
  }
  return result;
}

double worth_of(const Shown& plan, Objective objective) {
  switch (objective) {
    case Objective::kThroughput: break;
    case Objective::kCost: return plan.dollars();
    case Objective::kGpus: return static_cast<double>(plan.gpus);
  }
  return to_seconds(plan.time);
}

// Of the fastest plans, those that are fast enough when simulated.
void take_fastest(const Request& request, const model::Model& model, Walk& walk, RequestResult& result) {
  RequestResult all = fastest(request, walk);
  SearchResult& found = all.found;
  std::vector<Shown> plans = walk.shown_within(found, Nanoseconds::max());
  found.best.clear();
  found.timed.clear();
  found.optimal = false;
  std::ranges::stable_sort(plans, {}, [&](const Shown& plan) { return worth_of(plan, request.objective); });
  if (!plans.empty()) {
    result.value = worth_of(plans.front(), request.objective);
    if (request.objective == Objective::kGpus) {
      result.bound = result.least = static_cast<double>(too_few_gpus(model, walk, longest_of(request)) + 1);
    }
  }
  for (Shown& plan : plans) found.best.push_back(std::move(plan.plan));
  result.found = std::move(found);
}

}  // namespace

std::span<const ObjectiveName> objective_names() { return kObjectives; }

std::string_view to_string(Objective objective) {
  return std::ranges::find(kObjectives, objective, &ObjectiveName::objective)->name;
}

std::int64_t gpus_of(const Composition& composition) {
  std::int64_t total = 0;
  for (const compose::StageChoice& stage : composition.stages) {
    for (const compose::PartChoice& part : stage.parts) total += part.gpus;
  }
  return total * composition.replicas;
}

MicroDollarsPerHour rate_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy) {
  MicroDollarsPerHour total{0};
  for (const compose::StageChoice& stage : composition.stages) {
    for (const compose::PartChoice& part : stage.parts) {
      const MicroDollarsPerHour price = price_of(class_of(composition, part, hierarchy));
      if (price.value() == 0) return MicroDollarsPerHour(0);
      total += price * (std::int64_t{part.gpus} * composition.replicas);
    }
  }
  return total;
}

double dollars_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy) {
  return rate_of(composition, hierarchy).as_double() * 1e-6 * to_seconds(composition.closed_form) / 3600;
}

RequestResult search_request(const Request& request, const model::Model& model,
                             const cluster::IslandHierarchy& hierarchy, const SearchOptions& options,
                             const LimitedSearch& search, const Timing& timing) {
  Walk walk(hierarchy, options, search, timing);
  RequestResult result;
  if (auto why = too_small(request, model, hierarchy)) {
    result.found.infeasible = std::move(*why);
    return result;
  }
  switch (request.objective) {
    case Objective::kThroughput: result = fastest(request, walk); break;
    case Objective::kCost: result = cheapest_plan(request, model, walk); break;
    case Objective::kGpus: result = fewest_gpus(request, model, walk); break;
  }
  const bool is_fastest = request.objective == Objective::kThroughput;
  if (result.found.best.empty() && request.longest_iteration && !is_fastest) {
    walk.start_over();
    take_fastest(request, model, walk, result);
  }
  const bool is_one_search = is_fastest && !request.budget && !request.longest_iteration;
  if (result.found.best.empty() && options.deadline.is_missed() && !is_one_search) {
    result.found.infeasible = compose::out_of_time(options.deadline);  // what single searches say is not of all
  }
  const Diagnostics& why = result.found.infeasible;
  const bool is_too_slow = !why.empty() && why.front().code == kTooSlow;
  if (result.found.best.empty() && request.budget && !result.found.is_out_of_budget() && !is_too_slow) {
    result.found.infeasible = too_dear(request, walk);
  }
  result.found.statistics = walk.effort().statistics;
  result.found.parallelizers = walk.effort().parallelizers;
  result.steps = walk.steps();
  return result;
}

}  // namespace tangram::objective
