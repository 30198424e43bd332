// Prices that prove the most. Goes in: what each thing is worth, and a function that says what prices cost. Comes out:
// prices whose worth over cost is nearly the largest there is.
//
// The cost is convex and grows in proportion to the prices, so that its slopes at any prices are a plane below it
// everywhere (Kelley, Journal of SIAM 8(4), 1960). The largest worth under all planes so far is a linear program; the
// next prices lie between its solution and the best so far, which keeps them from jumping.
#pragma once

#include <functional>
#include <vector>

namespace tangram::duals {

/// Slopes of the cost, one for each price; together they are the cost: their products with the prices add up to it.
using CostSlopes = std::vector<double>;

struct PriceSearch {
  std::vector<double> worth;  ///< of each price; none below 0
  /// Several planes may be known at the same prices: the largest is the cost. Those not kept need not be told.
  std::function<std::vector<CostSlopes>(const std::vector<double>& prices)> costs;
  double enough = 1e-3;  ///< ends where this share could be gained at most
  int most_steps = 60;
  /// Planes that cost a smaller share of the largest at their prices hardly ever matter, and are not kept.
  double near_cost = 0.95;
  double towards_solution = 0.35;  ///< of the linear program: from the best so far to the next prices
  double furthest_price = 20;      ///< times the first one; without planes nothing bounds a price
};

struct PricesFound {
  std::vector<double> prices;
  double ratio = 0;  ///< worth over cost there
};

/// Sum of a_i b_i.
[[nodiscard]] double product(const std::vector<double>& a, const std::vector<double>& b);

/// `prices` to begin with, all above 0 where anything is worth or costs something.
[[nodiscard]] PricesFound search_prices(const PriceSearch& search, std::vector<double> prices);

}  // namespace tangram::duals
