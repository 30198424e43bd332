// The cheapest placement at given prices: minimum cut and dynamic program against each other and every placement.
#include "prices/price_search.hpp"

#include <algorithm>
#include <string>

#include "definition.hpp"
#include "ledger.hpp"
#include "prices/cut.hpp"
#include "prices/frontier.hpp"
#include "random_problem.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"

using namespace tangram;
using namespace tangram::tests;
using namespace tangram::disaggregate;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

constexpr double kTiny = 1e-9;

std::vector<double> random_prices(std::mt19937_64& random, int rows) {
  std::vector<double> prices;
  for (int i = 0; i < rows; ++i) prices.push_back(pick(random, 0, 3) == 0 ? 0 : pick(random, 1, 10));
  return prices;
}

// The least that any placement takes at the prices, by the rows of each.
double least_priced(const Resources& resources, const std::vector<double>& prices) {
  double least = kNever;
  each_placement(resources.problem(), [&](const Placement& placement) {
    for (int k = 0; k < resources.problem().kernel_count(); ++k) {
      if (std::isinf(at(at(resources.problem().kernels, k).seconds, at(placement, k)))) return;
    }
    least = std::min(least, Ledger(resources, placement).priced(prices));
  });
  return least;
}

}  // namespace

TEST_CASE("disaggregate prices: a minimum cut is the cheapest placement on two classes") {
  std::mt19937_64 random(11);
  for (int i = 0; i < cases(400); ++i) {
    INFO("case " << i);
    const Problem problem = random_problem(random, {9, 2, 2});
    const Resources resources(problem);
    const std::vector<double> prices = random_prices(random, resources.rows());
    PricedProblem priced(resources);
    priced.set_prices(prices);
    const double least = least_priced(resources, prices);
    const Cheapest cut = cheapest_by_cut(priced);
    CHECK(cut.bound <= least);
    CHECK(priced.total(cut.placement) == Approx(least).epsilon(kTiny));
    CHECK(cut.bound == Approx(least).epsilon(kTiny));
  }
}

TEST_CASE("disaggregate prices: the dynamic program is the cheapest placement where its states suffice") {
  std::mt19937_64 random(12);
  int exact = 0;
  for (int i = 0; i < cases(400); ++i) {
    INFO("case " << i);
    const Problem problem = random_problem(random, {8, 1, 3});
    const Resources resources(problem);
    const std::vector<double> prices = random_prices(random, resources.rows());
    PricedProblem priced(resources);
    priced.set_prices(prices);
    const double least = least_priced(resources, prices);
    for (const int bits : {20, 4, 0}) {
      const Frontier frontier(priced, bits);
      const Cheapest found = frontier.cheapest(priced);
      CHECK(found.bound <= least * (1 + kTiny));
      CHECK(priced.total(found.placement) >= least * (1 - kTiny));
      if (!frontier.is_exact()) continue;
      ++exact;
      CHECK(found.bound == Approx(least).epsilon(kTiny));
      CHECK(priced.total(found.placement) == Approx(least).epsilon(kTiny));
    }
  }
  CHECK(exact >= enough(400));
}

TEST_CASE("disaggregate prices: kernels that are moved leave the rows of their placement") {
  std::mt19937_64 random(13);
  for (int i = 0; i < cases(200); ++i) {
    const Problem problem = random_problem(random, {10, 1, 3});
    const Resources resources(problem);
    Placement placement(problem.kernels.size(), 0);
    Ledger moved(resources);
    for (int step = 0; step < 40; ++step) {
      const int kernel = pick(random, 0, problem.kernel_count() - 1);
      const int on = pick(random, 0, problem.class_count() - 1);
      if (std::isinf(at(at(problem.kernels, kernel).seconds, on))) continue;
      moved.put(kernel, on);
    }
    Ledger anew(resources);
    for (int k = 0; k < problem.kernel_count(); ++k) {
      if (at(moved.placement(), k) != Ledger::kNowhere) anew.put(k, at(moved.placement(), k));
    }
    for (std::size_t r = 0; r < anew.rows().size(); ++r) CHECK(moved.rows()[r] == Approx(anew.rows()[r]).margin(1e-9));
  }
}

TEST_CASE("disaggregate prices: bound and mixture of the relaxation meet") {
  std::mt19937_64 random(17);
  int met = 0;
  for (int i = 0; i < cases(200); ++i) {
    INFO("case " << i);
    const Problem problem = random_problem(random, {8, 2, 3, true, false});
    const Resources resources(problem);
    const Relaxation relaxation = relax(resources);
    if (std::isinf(relaxation.bound)) continue;
    CHECK(relaxation.bound <= relaxation.period * (1 + 1e-6));
    met += relaxation.period <= relaxation.bound * (1 + 1e-4) ? 1 : 0;
    double sum = 0;
    for (const double share : relaxation.shares) sum += share;
    CHECK(sum == Approx(1));
  }
  CHECK(met >= enough(150));
}
