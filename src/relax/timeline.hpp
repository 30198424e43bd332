// How pipelines fill within a time. Goes in: the modes in which blocks may run at a range of microbatches, and prices.
// Comes out: what pipelines gain and use at most when they take what gains most at each moment of their fill.
#pragma once

#include <cstddef>
#include <vector>

#include "execution_modes.hpp"
#include "tangram/duals/price_search.hpp"

namespace tangram::relax {

using duals::CostSlopes;

/// Moments of the fill, as shares of the iteration: each counts as its beginning.
struct Moment {
  double begin = 0;
  double length = 0;
};
[[nodiscard]] std::vector<Moment> moments_of_fill(const BoundTuning& tuning = {});

/// Moments are looked at as far as some prices reach. `modes` and `moments` must outlive it.
class Timeline {
 public:
  /// `forward_share`: so much of all fill is forward at least.
  Timeline(const Range& range, double forward_share, const std::vector<std::vector<ExecutionMode>>& modes,
           double seconds, const std::vector<Moment>& moments);

  /// At prices of GPUs by class and, last, of a block: blocks of a sample that are gained, and less the GPUs used.
  [[nodiscard]] CostSlopes response(const std::vector<double>& prices);

 private:
  struct Point {
    std::size_t island_class = 0;
    double gain = 0;  // blocks of a sample
    double cost = 0;  // GPUs
  };

  static bool is_below(const Point& a, const Point& b, const Point& c);
  void add_moment();
  void add_hull(std::size_t island_class, double at);
  [[nodiscard]] const Point* best_of(std::size_t moment, const std::vector<double>& prices) const;
  [[nodiscard]] Point point_of(std::size_t island_class, std::size_t index, double at);
  [[nodiscard]] double blocks_from(const ExecutionMode& mode, double begin) const;

  double first_;
  double last_;
  double forward_share_;
  const std::vector<std::vector<ExecutionMode>>& modes_;  // by class
  double seconds_;
  const std::vector<Moment>& moments_;
  std::vector<std::vector<double>> blocks_;  // by class: most of a stage at each mode so far
  std::vector<std::vector<double>> costs_;   // by class: least of each mode from now on
  std::vector<Point> points_;                // that are best at some prices, moment by moment
  std::vector<std::size_t> ends_;            // of the moments' points
};

}  // namespace tangram::relax
