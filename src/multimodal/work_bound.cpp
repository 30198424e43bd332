#include "tangram/multimodal/work_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tangram/base/at.hpp"
#include "tangram/duals/price_search.hpp"

namespace tangram::multimodal {

namespace {

// What a GPU earns at most at prices of blocks, and by which kind.
struct Earning {
  int kind = 0;
  double price = 0;
};

Earning earning_of(const FleetWork& work, int gpu_class, const std::vector<double>& block_price) {
  Earning best;
  for (int k = 0; k < work.gpu_time.rows(); ++k) {
    const double earned = at(block_price, k) / work.gpu_time(k, gpu_class);
    if (earned > best.price) best = {k, earned};
  }
  return best;
}

// The cost of prices, as the plane that each class adds to.
std::vector<duals::CostSlopes> cost_of(const FleetWork& work, const std::vector<double>& block_price) {
  duals::CostSlopes slopes(work.amount.size(), 0);
  for (int c = 0; c < work.gpu_time.columns(); ++c) {
    const Earning earning = earning_of(work, c, block_price);
    if (earning.price > 0) at(slopes, earning.kind) += at(work.gpus, c) / work.gpu_time(earning.kind, c);
  }
  return {slopes};
}

}  // namespace

WorkBound work_bound(const FleetWork& work) {
  TANGRAM_ASSERT(work.amount.size() == static_cast<std::size_t>(work.gpu_time.rows()));
  TANGRAM_ASSERT(work.gpus.size() == static_cast<std::size_t>(work.gpu_time.columns()));
  constexpr double kRounding = 1e-9;
  WorkBound bound;
  for (int k = 0; k < work.gpu_time.rows(); ++k) {
    double least = std::numeric_limits<double>::infinity();
    for (int c = 0; c < work.gpu_time.columns(); ++c) {
      if (at(work.gpus, c) > 0) least = std::min(least, work.gpu_time(k, c));
    }
    bound.block_price.push_back(least);
    if (!std::isfinite(least)) bound.time = least;
  }
  if (bound.time > 0) return bound;
  duals::PriceSearch search;
  search.worth = work.amount;
  search.costs = [&](const std::vector<double>& prices) { return cost_of(work, prices); };
  search.enough = 1e-7;
  search.most_steps = 1000;
  search.near_cost = 0;  // planes are few, and the last ones meet at the solution
  search.towards_solution = 1;
  search.furthest_price = 1e3;
  const duals::PricesFound found = duals::search_prices(search, bound.block_price);
  bound.time = found.ratio * (1 - kRounding);
  bound.block_price = found.prices;
  for (int c = 0; c < work.gpu_time.columns(); ++c) {
    bound.gpu_price.push_back(earning_of(work, c, bound.block_price).price);
  }
  return bound;
}

}  // namespace tangram::multimodal
