// What a plan is wanted for. Goes in: a wish, and a way to search for the fastest plan that spends no more than so
// much. Comes out: the plan that suits the wish best, or the list of all that are worth a choice.
//
// Every answer is made of searches for the fastest plan under a limit on what it spends, each exact where it finishes.
// The fastest time t(r) of plans that spend at most r never grows with r, so that
//   cost   r t is least on the walk r_0 = all, r_i = fastest plan under a limit below C / t(r_(i-1)), C the least cost
//   so
//          far: what spends more than that and is no faster than t(r_(i-1)) costs no less than C
//   GPUs   the fewest that reach a wanted time are found by bisection
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tangram/compose/search.hpp"

namespace tangram::compose {

enum class Objective : std::uint8_t {
  kThroughput,  ///< the fastest iteration
  kCost,        ///< the least money per token
  kGpus,        ///< the fewest GPUs; needs longest_iteration
};

struct Wish {
  Objective objective = Objective::kThroughput;
  std::optional<MicroDollarsPerHour> budget = {};     ///< for all GPUs that are used; not with kGpus
  std::optional<Nanoseconds> longest_iteration = {};  ///< by closed form
};

/// What a composition uses: GPUs, and their prices. Zero where a price is not known.
[[nodiscard]] std::int64_t gpus_of(const Composition& composition);
[[nodiscard]] MicroDollarsPerHour rate_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy);
/// Dollars per iteration: rate x time.
[[nodiscard]] double dollars_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy);

/// Searches as the options say; the caller binds model, islands, target and parallelizers.
using LimitedSearch = std::function<SearchResult(const SearchOptions&)>;

struct WishResult {
  SearchResult found;      ///< best first by the wish; `optimal` speaks of the wish, the bounds of time under `limit`
  double value = 0;        ///< of found.best.front(): seconds, dollars an iteration, GPUs
  double bound = 0;        ///< no plan of the space has less
  std::int64_t steps = 0;  ///< searches made
};

/// The label budget of the options is shared by all searches. Infeasible wishes are results without compositions: they
/// say what could be reached.
[[nodiscard]] WishResult search_wish(const Wish& wish, const model::Model& model,
                                     const cluster::IslandHierarchy& hierarchy, const SearchOptions& options,
                                     const LimitedSearch& search);

/// Plans of which none is at least as good as another in iteration time, money per hour and GPUs, fastest first: the
/// fastest under limits that fall by a seventh or to below what the plan before spends, first of money (where all
/// prices are known), then of GPUs. At most `most` of each.
[[nodiscard]] std::vector<Composition> pareto_plans(const cluster::IslandHierarchy& hierarchy,
                                                    const SearchOptions& options, std::size_t most,
                                                    const LimitedSearch& search);

}  // namespace tangram::compose
