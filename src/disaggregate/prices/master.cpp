#include "master.hpp"

#include <algorithm>
#include <limits>

#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::disaggregate {

namespace {

// Maximises the sum of z with A z <= b, z >= 0, b > 0. The tableau has the columns of A, one slack for each row, and b.
class Tableau {
 public:
  Tableau(int rows, int columns) : columns_(columns), cells_(rows + 1, columns + rows + 1, 0.0) {
    for (int i = 0; i < rows; ++i) {
      cells_(i, columns + i) = 1;
      basic_.push_back(columns + i);
    }
    for (int j = 0; j < columns; ++j) cells_(rows, j) = -1;  // of z itself: how much the sum falls short
  }

  double& coefficient(int row, int column) { return cells_(row, column); }
  double& right_side(int row) { return cells_(row, cells_.columns() - 1); }

  void solve() {
    constexpr int kMostPivots = 5000;  // a few times as many as rows are usual
    for (int i = 0; i < kMostPivots; ++i) {
      const int column = entering();
      const int row = column < 0 ? -1 : leaving(column);
      if (row < 0) return;
      pivot(row, column);
    }
  }

  [[nodiscard]] std::vector<double> solution() {
    std::vector<double> z(static_cast<std::size_t>(columns_), 0);
    for (int i = 0; i < rows(); ++i) {
      if (at(basic_, i) < columns_) at(z, at(basic_, i)) = std::max(0.0, right_side(i));
    }
    return z;
  }
  [[nodiscard]] double price(int row) const { return std::max(0.0, cells_(rows(), columns_ + row)); }

 private:
  static constexpr double kSmall = 1e-11;

  [[nodiscard]] int rows() const { return static_cast<int>(basic_.size()); }

  [[nodiscard]] int entering() const {
    const auto worth = cells_.row(rows());
    const auto best = std::min_element(worth.begin(), worth.end() - 1);
    return *best < -kSmall ? static_cast<int>(best - worth.begin()) : -1;
  }

  [[nodiscard]] int leaving(int column) {
    int best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < rows(); ++i) {
      if (cells_(i, column) <= kSmall || right_side(i) / cells_(i, column) >= least) continue;
      least = right_side(i) / cells_(i, column);
      best = i;
    }
    return best;
  }

  void pivot(int row, int column) {
    const double inverse = 1 / cells_(row, column);
    for (double& cell : cells_.row(row)) cell *= inverse;
    const auto from = cells_.row(row);
    for (int i = 0; i < cells_.rows(); ++i) {
      const double factor = cells_(i, column);
      if (i == row || factor == 0) continue;
      const auto to = cells_.row(i);
      for (std::size_t j = 0; j < to.size(); ++j) to[j] -= factor * from[j];
    }
    at(basic_, row) = column;
  }

  int columns_;
  Grid<double> cells_;  // the last row is the objective
  std::vector<int> basic_;
};

}  // namespace

MasterSolution Master::solve() const {
  const int columns = static_cast<int>(columns_.size());
  Tableau tableau(rows_, columns);
  for (int i = 0; i < rows_; ++i) {
    const bool is_memory = i >= first_memory_row_;
    for (int j = 0; j < columns; ++j) tableau.coefficient(i, j) = at(at(columns_, j), i) - (is_memory ? 1 : 0);
    tableau.right_side(i) = (is_memory ? 0 : 1) + 1e-9 * (i + 1);
  }
  tableau.solve();
  MasterSolution result;
  result.shares = tableau.solution();
  double sum = 0;
  for (const double z : result.shares) sum += z;
  // Less is what the moved right sides let in where memory allows nothing.
  const bool is_feasible = sum > 1e-6;
  double worth = 0;
  for (int i = 0; i < rows_; ++i) {
    result.prices.push_back(tableau.price(i));
    if (i < first_memory_row_) worth += result.prices.back();
  }
  result.period = is_feasible ? 1 / sum : std::numeric_limits<double>::infinity();
  for (double& share : result.shares) share = is_feasible ? share / sum : 0;
  for (int i = 0; i < rows_; ++i) {
    double& price = at(result.prices, i);
    const bool is_memory = i >= first_memory_row_;
    price = worth > 1e-12 ? price / worth : is_memory ? price : 0;
  }
  return result;
}

}  // namespace tangram::disaggregate
