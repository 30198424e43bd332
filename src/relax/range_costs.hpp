// What prices cost over all numbers of microbatches. Goes in: the modes in which blocks may run, and a time that is to
// be disproved. Comes out: prices at which no number of microbatches costs more than what is said. Few numbers matter:
// ranges of them are looked at together first, and apart only where together they might cost most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "execution_modes.hpp"
#include "tangram/duals/price_search.hpp"
#include "timeline.hpp"

namespace tangram::relax {

using duals::PricesFound;

class RangeCosts {
 public:
  using ModesOf = std::function<std::vector<std::vector<ExecutionMode>>(const Range&)>;  ///< by class

  /// Numbers up to `batch`. `forward_share`: so much of all fill is forward at least. `used`: GPUs of a sample that
  /// there are, by class.
  RangeCosts(std::int64_t batch, double forward_share, std::vector<double> used, ModesOf modes,
             const BoundTuning& tuning);

  /// The best prices found, from `prices` on, where blocks are counted as within `seconds`: worth over the largest cost
  /// of all ranges.
  [[nodiscard]] PricesFound search(double seconds, const std::vector<double>& worth, const std::vector<double>& prices);

 private:
  // A range, or several next to each other.
  struct Node {
    Range range;
    std::size_t first_child = 0;
    std::size_t children = 0;  // none: a range by itself
  };

  void list_nodes(std::int64_t batch);
  [[nodiscard]] const std::vector<std::vector<ExecutionMode>>& modes_at(std::size_t node);
  [[nodiscard]] Timeline& timeline_at(std::size_t node);
  [[nodiscard]] CostSlopes slopes_at(std::size_t node, const std::vector<double>& prices);
  [[nodiscard]] CostSlopes with_used(CostSlopes slopes) const;
  [[nodiscard]] double coarse_cost_at(std::size_t node, const std::vector<double>& prices);
  [[nodiscard]] std::vector<CostSlopes> dearest_open(const std::vector<double>& prices);
  [[nodiscard]] double cost_at(std::size_t node, const std::vector<double>& prices);
  void find_above(std::size_t node, const std::vector<double>& prices, double most, std::vector<std::size_t>& above);
  [[nodiscard]] bool open_above(const std::vector<double>& prices, double most);

  BoundTuning tuning_;
  double forward_share_;
  std::vector<double> used_;
  ModesOf modes_of_;
  std::vector<Moment> moments_;
  std::vector<Moment> coarse_moments_;
  std::vector<Node> nodes_;                                                    // single ranges first, all of them last
  std::vector<std::optional<std::vector<std::vector<ExecutionMode>>>> modes_;  // by node, as far as needed
  std::vector<std::optional<Timeline>> timelines_;                             // the same, at `seconds_`
  std::vector<std::optional<Timeline>> coarse_;                                // the same, of coarse moments
  double seconds_ = 0;
  std::vector<std::size_t> open_;  // single ranges whose cost counts from the beginning
};

}  // namespace tangram::relax
