// Objectives and limits of a plan. Goes in: a request, and a way to search for the fastest plan that spends no more
// than so much. Comes out: the best plan by the objective within the limits, or the list of all that are worth a
// choice.
//
// Every answer is made of searches for the fastest plan under a limit on what it spends, each exact by closed form
// where it finishes; what is wanted of a plan is judged by the time that its reader is shown (Timing).
//   cost   windows of rates are searched for plans that beat the cheapest so far (src/objective/cheapest_plan.hpp)
//   GPUs   the fewest that reach a wanted time are found by bisection
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tangram/compose/search.hpp"

namespace tangram::objective {

using cluster::MicroDollarsPerHour;
using compose::Composition;
using compose::SearchOptions;
using compose::SearchResult;

enum class Objective : std::uint8_t {
  kThroughput,  ///< the fastest iteration
  kCost,        ///< the least money per token
  kGpus,        ///< the fewest GPUs; needs longest_iteration
};

struct ObjectiveName {
  std::string_view name;
  Objective objective;
};
[[nodiscard]] std::span<const ObjectiveName> objective_names();
[[nodiscard]] std::string_view to_string(Objective objective);

/// An objective and its limits.
struct Request {
  Objective objective = Objective::kThroughput;
  std::optional<MicroDollarsPerHour> budget = {};     ///< for all GPUs that are used; not with kGpus
  std::optional<Nanoseconds> longest_iteration = {};  ///< simulated
};

/// What a composition uses: GPUs, and their prices, which are zero where one of them is not known.
[[nodiscard]] std::int64_t gpus_of(const Composition& composition);
[[nodiscard]] MicroDollarsPerHour rate_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy);
/// Dollars per iteration: rate x time.
[[nodiscard]] double dollars_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy);

/// Searches as the options say; the caller binds model, islands, target and parallelizers.
using LimitedSearch = std::function<SearchResult(const SearchOptions&)>;

/// The iteration time that a reader is shown: simulated. nullopt: the target cannot run the plan.
using Timing = std::function<std::optional<Nanoseconds>(const Composition&)>;

/// A plan with what its reader is shown of it.
struct Shown {
  Composition plan;
  std::int64_t gpus = 0;
  MicroDollarsPerHour rate{0};  ///< 0: the price of a GPU is not known
  Nanoseconds time;

  [[nodiscard]] double dollars() const { return rate.as_double() * 1e-6 * to_seconds(time) / 3600; }  // an iteration
};

struct RequestResult {
  SearchResult found;      ///< best first by the objective; `optimal` speaks of it, the bounds of time under `limit`
  double value = 0;        ///< of found.best.front(): seconds, dollars an iteration, GPUs
  double bound = 0;        ///< no plan of the space has less, by closed form; 0: not known
  double least = 0;        ///< no plan at all has less, by work alone; 0: not known
  std::int64_t steps = 0;  ///< searches made
};

/// The label budget of the options is shared by all searches. Infeasible requests are results without compositions:
/// they say what could be reached.
[[nodiscard]] RequestResult search_request(const Request& request, const model::Model& model,
                                           const cluster::IslandHierarchy& hierarchy, const SearchOptions& options,
                                           const LimitedSearch& search, const Timing& timing = {});

/// Plans of which none is at least as good as another in the time shown, money per hour and GPUs, fastest first: the
/// fastest under limits that fall by a seventh, first of money (where all prices are known), then of GPUs, at most
/// `most` of each; the fastest of each GPU type alone; and the cheapest per token. Of the request, its limits count.
/// Empty: there is none, and `infeasible` says why.
struct ParetoPlans {
  std::vector<Shown> plans;
  SearchResult effort;     ///< what all searches took and speak of, without plans; `finished`: none was ended early
  std::int64_t steps = 0;  ///< searches made
  Diagnostics infeasible;
};
[[nodiscard]] ParetoPlans pareto_plans(const Request& limits, const model::Model& model,
                                       const cluster::IslandHierarchy& hierarchy, const SearchOptions& options,
                                       std::size_t most, const LimitedSearch& search, const Timing& timing = {});

}  // namespace tangram::objective
