// The fastest way to put the blocks that are left into whole stages, when their order does not matter. Goes in: a
// program and the longest period of a window. Comes out: for any number of blocks and units left of every class, a
// lower bound on what covering them adds to A + max o.
//
//   fast_k(u, w) = least sum over stages of (T + 2 c_min),   stages of class k on at most u units, weight w at least
//   rest(w)      = least sum over classes of fast_k(units left of k, w_k),   sum of w_k = w
//
// Units of different classes never compete, so that classes meet in the blocks that they hold alone: a knapsack for
// every class and a minimum over splits of the blocks is all. Where a price for units (completion_bound.hpp) lets parts
// of stages add up, this counts whole ones; what it does not see is which stage holds how many microbatches (all hold
// those of the next one) and that the ends of a model are not like its middle. The first stage counts with its least
// A + o, as there, and T is T - W under zero bubble. Blocks weigh as in capacity.hpp, and mixed stages count in parts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "fastest_plans.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

class KnapsackBound {
 public:
  KnapsackBound(const Program& program, const FastestPlans& fastest, const BlockWeights& weights, std::int64_t period);

  /// What covering blocks [0, blocks) adds in front of a label whose next stage holds `depth` microbatches, with so
  /// many units left of every class. Infinite: they can not be covered.
  [[nodiscard]] double rest(int blocks, std::int64_t depth, std::span<const std::int64_t> left);
  /// A + max o of any chain whose stages fit the period.
  [[nodiscard]] double root();
  /// Depths of equal tier share their tables.
  [[nodiscard]] std::size_t tier(std::int64_t depth) const;

 private:
  struct Item {
    int units = 0;
    int weight = 0;
    double cost = 0;
    bool operator==(const Item&) const = default;
  };
  /// Of one class: stages, and first stages of the pipeline.
  struct Items {
    std::vector<Item> inner;
    std::vector<Item> first;
    bool operator==(const Items&) const = default;
  };
  /// [w] the least cost of weight w or more, and the same with the most weight in front.
  struct Costs {
    std::vector<double> of;
    std::vector<double> back;
  };
  /// Without the first stage and with it.
  struct Row {
    Costs inner;
    Costs first;
  };
  /// Units of the active classes of a run, mixed radix, in two words.
  struct UnitsKey {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const UnitsKey&) const = default;
  };
  struct UnitsKeyHash {
    std::size_t operator()(const UnitsKey& key) const;
  };
  struct Tables {
    std::vector<Items> items;                                             // by class
    std::vector<std::vector<Row>> by_class;                               // [class][units / grain]
    std::vector<std::unordered_map<UnitsKey, Row, UnitsKeyHash>> joined;  // [run of classes] by their units
  };

  /// The least cost of weight w on two sets of classes together.
  [[nodiscard]] static double convolution_at(const Costs& a, const Costs& b, std::size_t weight);

  /// Stages hold no fewer microbatches than those of the tier.
  [[nodiscard]] const auto& tier_depths() const { return fastest_.tuning().knapsack_depths; }
  [[nodiscard]] UnitsKey key_of(std::size_t from, std::size_t to, std::span<const std::int64_t> left) const;
  [[nodiscard]] std::vector<Items> items_at(int depth) const;
  void add_parts(const Option& option, int weight, double cost, bool is_first, std::vector<Items>& items) const;
  Tables& tables_at(std::int64_t depth);
  static void reverse(Row& row);
  void fill(Tables& tables) const;
  const Row& row(Tables& tables, std::size_t from, std::size_t to, std::span<const std::int64_t> left,
                 std::size_t weight);

  const Program& program_;
  const FastestPlans& fastest_;
  const BlockWeights& weights_;
  std::int64_t period_;
  int total_ = 0;              // weight of all blocks
  double hop_ = 0;             // least round trip of any boundary
  std::vector<double> dense_;  // [class] weight that a unit holds at most
  std::vector<int> grain_;     // [class] units come in multiples of so many; 0: no stage takes any
  std::vector<std::size_t> active_;
  std::vector<std::unique_ptr<Tables>> tiers_;  // made when they are first asked for
  std::vector<std::size_t> shared_;             // [tier] the one whose tables it uses
};

}  // namespace tangram::chain
