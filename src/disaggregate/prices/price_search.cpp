#include "price_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "../ledger.hpp"
#include "cut.hpp"
#include "frontier.hpp"
#include "master.hpp"
#include "priced.hpp"

namespace tangram::disaggregate {

namespace {

// Seconds of a round if every kernel ran on its fastest class and all GPUs shared the work: about a period.
double unit_of_time(const Problem& problem) {
  double seconds = 0;
  for (const Kernel& kernel : problem.kernels) {
    seconds += at(problem.phases, kernel.phase).passes * *std::ranges::min_element(kernel.seconds);
  }
  int gpus = 0;
  for (const GpuClass& c : problem.classes) gpus += c.count;
  return seconds > 0 ? seconds / gpus : 1;
}

class ColumnGeneration {
 public:
  ColumnGeneration(const Resources& resources, const PriceSearch& search)
      : resources_(resources),
        search_(search),
        unit_(unit_of_time(resources.problem())),
        priced_(resources),
        master_(resources.rows(), resources.memory_row(0)) {
    if (resources.problem().class_count() != 2) frontier_.emplace(priced_, search.state_bits);
  }

  Relaxation run() {
    for (Placement& placement : on_one_class(resources_.problem())) static_cast<void>(add(std::move(placement)));
    MasterSolution mixed = master_.solve();
    for (int step = 0; step < search_.most_steps && !is_closed(mixed); ++step) {
      const bool is_new = try_prices(smoothed(mixed)) || try_prices(mixed.prices);
      if (!is_new) break;
      mixed = master_.solve();
    }
    return result(mixed);
  }

 private:
  // Whether it is one that was not there before.
  bool add(Placement placement) {
    if (std::ranges::find(placements_, placement) != placements_.end()) return false;
    std::vector<double> rows = Ledger(resources_, placement).rows();
    for (int i = 0; i < resources_.memory_row(0); ++i) at(rows, i) /= unit_;
    master_.add(std::move(rows));
    placements_.push_back(std::move(placement));
    return true;
  }

  [[nodiscard]] bool is_closed(const MasterSolution& mixed) const {
    return std::isinf(bound_) || mixed.period * (1 - search_.tolerance) <= bound_;
  }

  [[nodiscard]] std::vector<double> smoothed(const MasterSolution& mixed) const {
    if (best_prices_.empty() || std::isinf(mixed.period)) return mixed.prices;
    std::vector<double> prices = mixed.prices;
    const double towards = search_.towards_master;
    for (std::size_t i = 0; i < prices.size(); ++i) prices[i] = towards * prices[i] + (1 - towards) * best_prices_[i];
    return prices;
  }

  // Whether the cheapest placement at these prices is a new one.
  bool try_prices(const std::vector<double>& prices) {
    std::vector<double> of_rows = prices;
    double of_time = 0;
    double of_memory = 0;
    for (int i = 0; i < resources_.rows(); ++i) {
      (resources_.is_memory(i) ? of_memory : of_time) += at(prices, i);
      if (!resources_.is_memory(i)) at(of_rows, i) /= unit_;
    }
    priced_.set_prices(of_rows);
    Cheapest cheapest = frontier_ ? frontier_->cheapest(priced_) : cheapest_by_cut(priced_);
    const double value = cheapest.bound - of_memory;
    if (of_time < 0.5) {  // only memory has a price: all placements overdraw it
      if (value > 1e-9 * of_memory) bound_ = kNever;
    } else if (best_prices_.empty() || value > bound_) {
      bound_ = std::max(0.0, value);
      best_prices_ = prices;
    }
    return !std::isinf(bound_) && add(std::move(cheapest.placement));
  }

  [[nodiscard]] Relaxation result(const MasterSolution& mixed) const {
    Relaxation found;
    found.bound = bound_ * unit_;
    found.period = mixed.period * unit_;
    found.prices = best_prices_.empty() ? mixed.prices : best_prices_;
    for (int i = resources_.memory_row(0); i < resources_.rows(); ++i) at(found.prices, i) *= unit_;
    std::vector<int> order(placements_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int j) { return std::pair(-at(mixed.shares, j), j); });
    for (const int j : order) {
      if (at(mixed.shares, j) <= 1e-9) break;
      found.placements.push_back(at(placements_, j));
      found.shares.push_back(at(mixed.shares, j));
    }
    return found;
  }

  const Resources& resources_;
  const PriceSearch search_;
  const double unit_;
  PricedProblem priced_;
  std::optional<Frontier> frontier_;
  Master master_;
  std::vector<Placement> placements_;  // the master's columns
  double bound_ = 0;                   // in units
  std::vector<double> best_prices_;
};

}  // namespace

std::vector<Placement> on_one_class(const Problem& problem) {
  std::vector<Placement> found;
  for (int c = 0; c < problem.class_count(); ++c) {
    Placement& placement = found.emplace_back();
    for (const Kernel& kernel : problem.kernels) {
      const auto fastest = std::ranges::min_element(kernel.seconds) - kernel.seconds.begin();
      placement.push_back(std::isinf(at(kernel.seconds, c)) ? static_cast<int>(fastest) : c);
    }
  }
  return found;
}

Relaxation relax(const Resources& resources, const PriceSearch& search) {
  return ColumnGeneration(resources, search).run();
}

}  // namespace tangram::disaggregate
