// Objectives other than throughput against the minimum over the whole space, limit by limit.
#include "tangram/objective/objective.hpp"

#include <algorithm>
#include <set>

#include "search_case.hpp"
#include "search_truth.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::tests;
using compose::Currency;
using objective::Objective;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

constexpr std::int64_t kMicro = 1'000'000;

// Whole dollars, so that few limits tell all plans apart.
SearchCase priced_case(std::mt19937_64& random) {
  SearchFlavour flavour;
  flavour.most_blocks = 3;
  flavour.most_batch = 4;
  SearchCase job = random_search_case(random, flavour);
  std::vector<int> prices(job.hierarchy.levels.front().classes.size());
  for (int& price : prices) price = std::uniform_int_distribution<int>(1, 4)(random);
  for (cluster::IslandLevel& level : job.hierarchy.levels) {
    for (std::size_t k = 0; k < prices.size(); ++k) level.classes[k].price_per_gpu_hour = Dollars(prices[k]);
  }
  return job;
}

objective::RequestResult granted(const SearchCase& job, const objective::Request& request) {
  const parallelizer::Parallelizer* const asked[] = {&job.parallelizer};
  return objective::search_request(request, *job.model, job.hierarchy, {}, [&](const compose::SearchOptions& options) {
    return compose::search(*job.model, job.hierarchy, asked, options);
  });
}

std::int64_t all_gpus(const SearchCase& job) {
  std::int64_t total = 0;
  for (const cluster::IslandClass& c : job.hierarchy.levels.front().classes) total += c.gpu_count();
  return total;
}

std::optional<std::int64_t> fastest(const SearchCase& job, Currency currency, std::int64_t most) {
  compose::SearchOptions options;
  options.spend = compose::SpendLimit{currency, most};
  return SearchTruth(job).best(options);
}

std::int64_t dearest_fleet(const SearchCase& job) {
  std::int64_t most = 0;
  for (const cluster::IslandLevel& level : job.hierarchy.levels) {
    std::int64_t total = 0;
    for (const cluster::IslandClass& c : level.classes) total += cluster::price_of(c).value() * c.gpu_count();
    most = std::max(most, total);
  }
  return most;
}

bool is_of_one_class(const compose::Composition& plan) {
  std::set<int> classes;
  for (const compose::StageChoice& stage : plan.stages) {
    for (const compose::PartChoice& part : stage.parts) classes.insert(part.island_class);
  }
  return classes.size() == 1;
}

}  // namespace

TEST_CASE("the cheapest plan is the cheapest of the fastest under every limit") {
  std::mt19937_64 random(31);
  int feasible = 0;
  int slower_than_fastest = 0;
  for (int i = 0; i < cases(800); ++i) {
    const SearchCase job = priced_case(random);
    INFO("case " << i);
    // A plan that spends r costs r t; under a limit of r the fastest costs no more.
    std::optional<std::int64_t> least;
    std::optional<std::int64_t> quickest;
    for (std::int64_t rate = kMicro; rate <= dearest_fleet(job); rate += kMicro) {
      const auto time = fastest(job, Currency::kMicroDollarsPerHour, rate);
      if (!time) continue;
      if (!quickest || *time < *quickest) quickest = time;
      if (!least || rate / kMicro * *time < *least) least = rate / kMicro * *time;
    }
    const objective::RequestResult result = granted(job, {.objective = Objective::kCost});
    REQUIRE(result.found.best.empty() == !least.has_value());
    if (!least) continue;
    ++feasible;
    REQUIRE(result.found.optimal);
    const compose::Composition& best = result.found.best.front();
    const std::int64_t cost = objective::rate_of(best, job.hierarchy).value() / kMicro * best.closed_form.value();
    REQUIRE(cost == *least);
    REQUIRE(SearchTruth(job).prices(best).contains(best.closed_form.value()));
    CHECK(result.bound == result.value);
    slower_than_fastest += best.closed_form.value() > *quickest ? 1 : 0;
  }
  CHECK(feasible >= enough(250));
  CHECK(slower_than_fastest >= enough(20));
}

TEST_CASE("the fewest GPUs are the smallest limit under which the time is reached") {
  std::mt19937_64 random(32);
  int feasible = 0;
  int fewer = 0;
  for (int i = 0; i < cases(800); ++i) {
    const SearchCase job = priced_case(random);
    INFO("case " << i);
    const auto quickest = fastest(job, Currency::kGpus, all_gpus(job));
    if (!quickest) continue;
    ++feasible;
    const std::int64_t wanted = *quickest * std::uniform_int_distribution<int>(10, 30)(random) / 10;
    std::int64_t least = 1;
    while (fastest(job, Currency::kGpus, least).value_or(INT64_MAX) > wanted) ++least;
    const objective::RequestResult result =
        granted(job, {.objective = Objective::kGpus, .longest_iteration = Nanoseconds(wanted)});
    REQUIRE_FALSE(result.found.best.empty());
    REQUIRE(result.found.optimal);
    REQUIRE(objective::gpus_of(result.found.best.front()) == least);
    REQUIRE(result.found.best.front().closed_form.value() == fastest(job, Currency::kGpus, least));
    CHECK(result.bound == static_cast<double>(least));
    fewer += least < all_gpus(job) ? 1 : 0;
    const objective::RequestResult beyond =
        granted(job, {.objective = Objective::kGpus, .longest_iteration = Nanoseconds(*quickest - 1)});
    REQUIRE(beyond.found.best.empty());
    CHECK(beyond.found.infeasible.front().code == "throughput-out-of-reach");
  }
  CHECK(feasible >= enough(250));
  CHECK(fewer >= enough(20));
}

TEST_CASE("a budget only leaves what it pays for") {
  std::mt19937_64 random(33);
  int bought = 0;
  int refused = 0;
  for (int i = 0; i < cases(800); ++i) {
    const SearchCase job = priced_case(random);
    INFO("case " << i);
    const std::int64_t budget = std::uniform_int_distribution<int>(1, 8)(random) * kMicro;
    const auto truth = fastest(job, Currency::kMicroDollarsPerHour, budget);
    const objective::RequestResult result = granted(job, {.budget = compose::MicroDollarsPerHour(budget)});
    REQUIRE(result.found.best.empty() == !truth.has_value());
    if (truth) {
      ++bought;
      REQUIRE(result.found.best.front().closed_form.value() == *truth);
      CHECK(objective::rate_of(result.found.best.front(), job.hierarchy).value() <= budget);
    } else {
      refused += result.found.infeasible.front().code == "budget-too-small" ? 1 : 0;
    }
  }
  CHECK(bought >= enough(200));
  CHECK(refused >= enough(10));
}

TEST_CASE("the list of choices holds the fastest plan and nothing that another one beats") {
  std::mt19937_64 random(34);
  int several = 0;
  for (int i = 0; i < cases(150); ++i) {
    const SearchCase job = priced_case(random);
    INFO("case " << i);
    const parallelizer::Parallelizer* const asked[] = {&job.parallelizer};
    const auto search = [&](const compose::SearchOptions& options) {
      return compose::search(*job.model, job.hierarchy, asked, options);
    };
    const auto plans = objective::pareto_plans({}, *job.model, job.hierarchy, {}, 100, search).plans;
    const auto quickest = fastest(job, Currency::kGpus, all_gpus(job));
    REQUIRE(plans.empty() == !quickest.has_value());
    if (!quickest) continue;
    REQUIRE(plans.front().time.value() == *quickest);
    several += plans.size() > 1 ? 1 : 0;
    const objective::RequestResult cheapest = granted(job, {.objective = Objective::kCost});
    CHECK(std::ranges::min(plans, {}, &objective::Shown::dollars).dollars() == cheapest.value);
    for (const objective::Shown& a : plans) {
      // Under its own spending it is the fastest, in one of the two currencies, or with GPUs of its type.
      const auto by_gpus = fastest(job, Currency::kGpus, a.gpus);
      const auto by_money = fastest(job, Currency::kMicroDollarsPerHour, a.rate.value());
      CHECK((by_gpus == a.time.value() || by_money == a.time.value() || is_of_one_class(a.plan)));
      const objective::RequestResult fewest =
          granted(job, {.objective = Objective::kGpus, .longest_iteration = a.time});
      CHECK(fewest.value <= static_cast<double>(a.gpus));
      for (const objective::Shown& b : plans) {
        if (&a != &b) CHECK_FALSE((a.time <= b.time && a.gpus <= b.gpus && a.rate <= b.rate));
      }
    }
  }
  CHECK(several >= enough(40));
}

TEST_CASE("what is simulated decides which plans are wanted") {
  std::mt19937_64 random(35);
  int fewer = 0;
  int asked_for = 0;
  int missed = 0;  // a dozen plans of each number of GPUs are simulated, not all
  for (int i = 0; i < cases(150); ++i) {
    const SearchCase job = priced_case(random);
    INFO("case " << i);
    const auto quickest = fastest(job, Currency::kGpus, all_gpus(job));
    if (!quickest) continue;
    // Plans of several stages are faster than by closed form.
    const objective::Timing timing = [](const compose::Composition& plan) -> std::optional<Nanoseconds> {
      return Nanoseconds(plan.stages.size() > 1 ? plan.closed_form.value() * 14 / 15 : plan.closed_form.value());
    };
    const parallelizer::Parallelizer* const asked[] = {&job.parallelizer};
    const auto search = [&](const compose::SearchOptions& options) {
      return compose::search(*job.model, job.hierarchy, asked, options);
    };
    const auto plans = objective::pareto_plans({}, *job.model, job.hierarchy, {}, 12, search, timing).plans;
    for (const objective::Shown& plan : plans) {
      const objective::Request request{.objective = Objective::kGpus, .longest_iteration = plan.time};
      const auto fewest = objective::search_request(request, *job.model, job.hierarchy, {}, search, timing);
      REQUIRE_FALSE(fewest.found.best.empty());
      ++asked_for;
      missed += fewest.value > static_cast<double>(plan.gpus) ? 1 : 0;
      CHECK(fewest.least <= fewest.value);
      for (const compose::Composition& best : fewest.found.best) CHECK(*timing(best) <= plan.time);
      const objective::RequestResult by_closed_form = granted(job, request);
      const bool more = by_closed_form.found.best.empty() || by_closed_form.value > fewest.value;
      fewer += more ? 1 : 0;
    }
  }
  CHECK(fewer >= enough(5));
  CHECK(missed * 50 <= asked_for);
}

TEST_CASE("a plan costs what its nodes cost") {
  std::mt19937_64 random(36);
  for (int i = 0; i < cases(100); ++i) {
    SearchCase job = priced_case(random);
    INFO("case " << i);
    for (cluster::IslandLevel& level : job.hierarchy.levels) {
      for (cluster::IslandClass& c : level.classes) c.device.price_per_hour = Dollars(1000);  // the list price
    }
    const std::int64_t budget = 4 * kMicro;
    const objective::RequestResult result = granted(job, {.budget = compose::MicroDollarsPerHour(budget)});
    const auto truth = fastest(job, Currency::kMicroDollarsPerHour, budget);
    REQUIRE(result.found.best.empty() == !truth.has_value());
    if (truth) CHECK(objective::rate_of(result.found.best.front(), job.hierarchy).value() <= budget);
  }
}
