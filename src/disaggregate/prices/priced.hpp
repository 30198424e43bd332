// A problem at given prices of its resources: what each choice costs, and the cheapest placement. Lagrangian relaxation
// leaves this problem, of a sum instead of a maximum.
#pragma once

#include <vector>

#include "../resources.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::disaggregate {

/// A cost that kernels share. With a writer: cost(from, to), once for each class `to` other than the writer's that has
/// a reader. Without: cost(on), once for each class that has a reader.
struct SharedCost {
  int writer = -1;
  std::vector<int> readers;  ///< ascending
};

/// What kernels and buffers cost; which costs are shared by whom does not depend on the prices.
class PricedProblem {
 public:
  explicit PricedProblem(const Resources& resources);

  /// `prices` by row of the resources, none negative.
  void set_prices(const std::vector<double>& prices);

  [[nodiscard]] int classes() const { return classes_; }
  [[nodiscard]] int kernels() const { return kernel_.rows(); }
  [[nodiscard]] const std::vector<SharedCost>& shared() const { return shared_; }
  /// kNever: the kernel does not run there.
  [[nodiscard]] double kernel(int number, int on) const { return kernel_(number, on); }
  [[nodiscard]] double cost(int shared, int from, int to) const { return cost_(shared, from * classes_ + to); }
  [[nodiscard]] double cost(int shared, int on) const { return cost_(shared, on); }
  /// Of a whole placement. O(kernels + readers).
  [[nodiscard]] double total(const Placement& placement) const;

 private:
  [[nodiscard]] double shared_total(int shared, const Placement& placement) const;

  const Resources* resources_;
  int classes_;
  Grid<double> kernel_;
  std::vector<SharedCost> shared_;
  std::vector<int> buffer_of_;  // of shared costs; -1: of a hop
  std::vector<int> hop_of_;     // of shared costs; -1: none
  std::vector<int> alone_;      // weights and caches of one reader: they count with the kernel
  Grid<double> cost_;
};

/// A placement, and what none is cheaper than: its own cost, unless costs were left out.
struct Cheapest {
  Placement placement;
  double bound = 0;
};

}  // namespace tangram::disaggregate
