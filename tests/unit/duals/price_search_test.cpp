// Prices that prove the most, where the answer is known.
#include "tangram/duals/price_search.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace tangram::duals;

TEST_CASE("the largest worth under planes is found at their corner") {
  // Cost max(x + 2 y, 2 x + y), both worth 1: largest where both are 1, at x = y = 1/3, worth 2/3 for a cost of 1.
  PriceSearch search;
  search.worth = {1, 1};
  search.costs = [](const std::vector<double>&) { return std::vector<CostSlopes>{{1, 2}, {2, 1}}; };
  const PricesFound found = search_prices(search, {5, 1});
  CHECK(found.ratio == Approx(2.0 / 3).epsilon(2e-3));
  CHECK(found.prices[0] + 2 * found.prices[1] <= 1 + 1e-9);
  CHECK(2 * found.prices[0] + found.prices[1] <= 1 + 1e-9);
}

TEST_CASE("a curved cost is approached by its planes") {
  // Cost |(x, y)|, worth 3 x + 4 y: the ratio is largest along (3, 4) and 5 there. Slopes at a point are its direction.
  PriceSearch search;
  search.worth = {3, 4};
  search.enough = 1e-4;
  search.costs = [](const std::vector<double>& p) {
    const double length = std::hypot(p[0], p[1]);
    return std::vector<CostSlopes>{{p[0] / length, p[1] / length}};
  };
  const PricesFound found = search_prices(search, {1, 1});
  CHECK(found.ratio <= 5 * (1 + 1e-9));
  CHECK(found.ratio >= 5 * (1 - 1e-3));
}

TEST_CASE("what is worth nothing is priced at nothing where it costs") {
  PriceSearch search;
  search.worth = {1, 0};
  search.costs = [](const std::vector<double>&) { return std::vector<CostSlopes>{{1, 1}}; };
  CHECK(search_prices(search, {1, 1}).ratio == Approx(1).epsilon(2e-3));
}
