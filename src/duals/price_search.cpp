#include "tangram/duals/price_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace tangram::duals {

namespace {

// Largest worth x with planes x <= 1 and x >= 0, by the simplex method from x = 0 (Dantzig's rule, dense).
class Simplex {
 public:
  Simplex(const std::vector<CostSlopes>& planes, const std::vector<double>& worth)
      : columns_(worth.size()), rows_(planes), basic_(planes.size()), free_(worth.size()) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      // Ties would let it turn in circles.
      rows_[i].push_back(1 + 1e-9 * static_cast<double>(i));
      basic_[i] = columns_ + i;
    }
    rows_.push_back(worth);
    rows_.back().push_back(0);
    for (std::size_t j = 0; j < columns_; ++j) free_[j] = j;
  }

  // None where there is no largest.
  std::optional<std::vector<double>> solve() {
    constexpr int kMostPivots = 2000;
    for (int i = 0; i < kMostPivots; ++i) {
      const std::size_t column = best_column();
      if (column == columns_) return solution();
      const std::size_t row = first_row(column);
      if (row + 1 == rows_.size()) return std::nullopt;
      pivot(row, column);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::size_t best_column() const {
    const auto end = rows_.back().end() - 1;
    const auto best = std::max_element(rows_.back().begin(), end);
    return *best > kSmall ? static_cast<std::size_t>(best - rows_.back().begin()) : columns_;
  }

  [[nodiscard]] std::size_t first_row(std::size_t column) const {
    std::size_t best = rows_.size() - 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i + 1 < rows_.size(); ++i) {
      if (rows_[i][column] <= kSmall || rows_[i][columns_] / rows_[i][column] >= least) continue;
      least = rows_[i][columns_] / rows_[i][column];
      best = i;
    }
    return best;
  }

  void pivot(std::size_t row, std::size_t column) {
    const double inverse = 1 / rows_[row][column];
    for (double& value : rows_[row]) value *= inverse;
    rows_[row][column] = inverse;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double factor = rows_[i][column];
      if (i == row || factor == 0) continue;
      for (std::size_t j = 0; j <= columns_; ++j) {
        if (j != column) rows_[i][j] -= factor * rows_[row][j];
      }
      rows_[i][column] = -factor * inverse;
    }
    std::swap(basic_[row], free_[column]);
  }

  [[nodiscard]] std::vector<double> solution() const {
    std::vector<double> x(columns_, 0);
    for (std::size_t i = 0; i < basic_.size(); ++i) {
      if (basic_[i] < columns_) x[basic_[i]] = std::max(0.0, rows_[i][columns_]);
    }
    return x;
  }

  static constexpr double kSmall = 1e-12;
  std::size_t columns_;
  std::vector<std::vector<double>> rows_;  // the last one is the worth
  std::vector<std::size_t> basic_;
  std::vector<std::size_t> free_;
};

// Without planes nothing bounds a price yet; no price is looked for that is more than so many times the first one.
std::vector<CostSlopes> bounds_of(const std::vector<double>& prices, double furthest) {
  std::vector<CostSlopes> planes;
  for (std::size_t j = 0; j < prices.size(); ++j) {
    if (prices[j] <= 0) continue;
    planes.emplace_back(prices.size(), 0.0)[j] = 1 / (furthest * prices[j]);
  }
  return planes;
}

double largest(const std::vector<CostSlopes>& planes, const std::vector<double>& prices) {
  double most = 0;
  for (const CostSlopes& plane : planes) most = std::max(most, product(plane, prices));
  return most;
}

}  // namespace

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

PricesFound search_prices(const PriceSearch& search, std::vector<double> prices) {
  const double towards = search.towards_solution;
  PricesFound found{prices, 0};
  std::vector<CostSlopes> planes;
  for (int step = 0; step < search.most_steps; ++step) {
    std::vector<CostSlopes> own = search.costs(prices);
    const double cost = largest(own, prices);
    if (!(cost > 0) || !std::isfinite(cost)) break;
    for (double& price : prices) price /= cost;
    if (planes.empty()) planes = bounds_of(prices, search.furthest_price);
    if (product(search.worth, prices) > found.ratio) found = {prices, product(search.worth, prices)};
    std::erase_if(own, [&](const CostSlopes& plane) { return product(plane, prices) < search.near_cost; });
    std::ranges::move(own, std::back_inserter(planes));
    const auto next = Simplex(planes, search.worth).solve();
    if (!next || product(search.worth, *next) <= found.ratio * (1 + search.enough)) break;
    for (std::size_t j = 0; j < prices.size(); ++j) {
      prices[j] = (1 - towards) * found.prices[j] + towards * (*next)[j];
    }
  }
  return found;
}

}  // namespace tangram::duals
