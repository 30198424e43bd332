// How many blocks the units of every class can hold within a period. Goes in: a program and the longest period of a
// window. Comes out: for every class, depth and number of units the most weight of blocks that stages on these units
// can hold, each stage within the period and with room for so many microbatches:
//
//   hold_k(u, d) = max of sum over stages of (largest slice of an option within the period, n_max >= d),   units <= u
//
// What is left of a pipeline can be covered only if sum over k of hold_k(units left, d) is at least its weight. Stages
// hold whole blocks, and this counts whole stages: where a price for units (completion_bound.hpp) lets two halves of
// stages that do not fit make up one that does, this does not.
//
// The weight of a block is 1, or 1 for blocks of one kind and 0 for others, whichever says more. A mixed stage counts
// for each of its classes with a part of its blocks, in proportion to what these units would hold alone: valid for any
// parts, because a cover then still gives every class no more than it can hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fastest_plans.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

class Capacity {
 public:
  Capacity(const Program& program, const FastestPlans& fastest, std::int64_t longest_period);
  /// For callers that do not ask for what is left of the units.
  struct RootAlone {};
  Capacity(const Program& program, const FastestPlans& fastest, std::int64_t longest_period, RootAlone);

  /// Those under which least is left over.
  [[nodiscard]] const BlockWeights& weights() const { return *weights_; }
  /// Whether all units can hold all blocks. Where they can not, nothing else may be asked.
  [[nodiscard]] bool covers_all() const { return covers_all_; }
  /// Whether blocks [0, n) fit on what is left of the units once an option has taken its own, in stages that hold
  /// `depth` microbatches.
  [[nodiscard]] bool covers_after(const Option& option, int blocks, std::int64_t depth,
                                  std::span<const std::int64_t> left) const;
  /// The most weight that the units left hold in stages of any depth once an option has taken its own, of which there
  /// must be as many.
  [[nodiscard]] std::int64_t held_beside(const Option& option, std::span<const std::int64_t> left) const;

 private:
  struct Item {
    int units = 0;
    std::int64_t weight = 0;
    bool operator==(const Item&) const = default;
  };

  /// Switched off, all units hold everything.
  [[nodiscard]] bool is_on() const { return fastest_.tuning().cuts.capacity; }
  void choose_weights();
  void note_slices(std::size_t list, std::int64_t weight, std::span<std::int64_t> heaviest) const;
  [[nodiscard]] std::vector<std::int64_t> heaviest_slices(const BlockWeights& weights) const;
  [[nodiscard]] Grid<std::int64_t> heaviest_slices_by_depth() const;
  [[nodiscard]] std::vector<std::vector<Item>> items_of(std::span<const std::int64_t> slices) const;
  [[nodiscard]] std::int64_t held_by_all(std::span<const std::int64_t> slices) const;
  void fill_tables();
  [[nodiscard]] std::int64_t held_on(std::size_t row, std::int64_t units) const {
    return tables_[row + static_cast<std::size_t>(units)];
  }
  static void fill_row(std::span<const Item> items, std::span<std::int64_t> row);

  const Program& program_;
  const FastestPlans& fastest_;
  std::int64_t period_;
  int depths_;
  bool covers_all_ = true;
  const BlockWeights* weights_ = nullptr;
  Grid<std::size_t> rows_;            // by depth and class: where the row of tables_ begins
  std::vector<std::int64_t> tables_;  // rows of hold_k(u)
};

/// The shortest period at which all units can hold all blocks; INT64_MAX: not even within `longest`.
[[nodiscard]] std::int64_t shortest_period(const Program& program, const FastestPlans& fastest, std::int64_t longest);

}  // namespace tangram::chain
