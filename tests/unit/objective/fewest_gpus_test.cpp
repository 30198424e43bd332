// Which searches are made for the fewest GPUs: of searches that are made up, whose labels are few.
#include <algorithm>
#include <functional>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/topology.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/objective/objective.hpp"

using namespace tangram;
using namespace tangram::objective;

namespace {

constexpr std::int64_t kLabels = 1'000'000;
constexpr double kFar = 0.15;  // with a GPU more a plan is faster by more
constexpr double kAlone = 64;  // seconds of a plan on one GPU

// One plan of each number of GPUs, all of which it uses equally well.
Composition plan_on(int gpus) {
  compose::PartChoice part;
  part.gpus = gpus;
  compose::StageChoice stage;
  stage.parts = {part};
  Composition plan;
  plan.stages = {stage};
  plan.closed_form = ceil_to_nanoseconds(kAlone / gpus);
  return plan;
}

// Searches need the more labels the more time they leave above the best plan, but for plans that are far faster.
struct MadeUpSearches {
  double labels_of_percent = 0;  // part of all labels for each percent
  int made = 0;

  SearchResult operator()(const SearchOptions& options) {
    ++made;
    const Composition best = plan_on(options.spend ? static_cast<int>(options.spend->most) : 8);
    SearchResult found;
    if (best.closed_form >= options.incumbent) {
      found.infeasible = {problem(ErrorKind::kInfeasible, "none", "none is as fast", "")};
      return found;
    }
    const bool is_limited = options.incumbent != Nanoseconds::max();
    const double spare = is_limited ? options.incumbent.as_double() / best.closed_form.as_double() - 1 : 0;
    const double labels = spare * 100 * labels_of_percent * static_cast<double>(kLabels);
    const bool is_hard = labels > static_cast<double>(options.label_budget) && spare < kFar;
    found.statistics.labels = spare < kFar ? std::min(static_cast<std::int64_t>(labels), options.label_budget) : 0;
    if (is_hard) {
      found.infeasible = {problem(ErrorKind::kIncomplete, "budget-spent", "no plan found", "")};
      return found;
    }
    found.best = {best};
    found.search_bound = best.closed_form;
    found.optimal = found.finished = true;
    return found;
  }
};

RequestResult fewest(Nanoseconds longest, MadeUpSearches searches, const Timing& timing) {
  const auto hierarchy = cluster::find_islands(testing::topology("[A100-80x8 a]"), 0.1);
  SearchOptions options;
  options.label_budget = kLabels;
  const Request request{.objective = Objective::kGpus, .longest_iteration = longest};
  return search_request(request, compose::fixtures::model_of(4), hierarchy, options, std::ref(searches), timing);
}

// `gain` of the plan on five GPUs, and a hundredth of a percent of the others.
Timing simulated(double gain) {
  return [gain](const Composition& plan) -> std::optional<Nanoseconds> {
    const double share = gpus_of(plan) == 5 ? gain : 0.0001;
    return ceil_to_nanoseconds(to_seconds(plan.closed_form) / (1 + share));
  };
}

}  // namespace

TEST_CASE("fewest GPUs: a search that needs many labels with much slack finds its plan with little") {
  const Timing timing = simulated(0.0001);
  const Nanoseconds longest = *timing(plan_on(5));
  const RequestResult result = fewest(longest, {.labels_of_percent = 0.1}, timing);
  CHECK(result.value == 5);
  CHECK(result.bound == 5);
  REQUIRE(result.found.best.size() == 1);
  CHECK(gpus_of(result.found.best.front()) == 5);
}

TEST_CASE("fewest GPUs: a plan that simulation makes faster than others is found with all the slack there is") {
  const Timing timing = simulated(0.08);
  const Nanoseconds longest = *timing(plan_on(5));
  CHECK(longest < plan_on(5).closed_form);
  const RequestResult result = fewest(longest, {.labels_of_percent = 0.001}, timing);
  CHECK(result.value == 5);
}

TEST_CASE("fewest GPUs: a search that is not finished is made again with more labels") {
  const Timing timing = simulated(0.0001);
  const Nanoseconds longest = *timing(plan_on(5));
  // The plan on five GPUs takes more than a quarter of the labels.
  const RequestResult result = fewest(longest, {.labels_of_percent = 30}, timing);
  CHECK(result.value == 5);
}
