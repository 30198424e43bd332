// How little a pipeline can still cost. Goes in: a program and the longest period of a window. Comes out: for every
// (blocks left, depth) a lower bound on what covering them adds to A + max o, with units priced by Lagrange
// multipliers:
//
//   phi(i, d) = min over last slice [i-n, i) and option k of
//               T_min(k, slice, d) + 2 c_min + sum lambda units + phi(i-n, d+1)
//   bound of a label = Lat + phi(i, n+1) - sum lambda * units left        (weak duality: valid for every lambda >= 0)
//
// The first stage of the pipeline, [0, n), counts with its least A + o in the place of T: it drains last, so that
// A + max o >= A_0 + o_0 + 2c + Lat of all others.
//
// and the same without times, as a test whether the units left can cover the blocks left at all:
//
//   need(i, d) = min of sum w units,   a label with need(i, n+1) > sum w * units left has no completion.
//
// T_min(k, slice, d) counts only partial plans that hold d microbatches, so that memory is part of both; depths beyond
// `depths` are treated as `depths`, which only weakens them. Under zero bubble it is the least T - W.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../resources.hpp"
#include "capacity.hpp"
#include "fastest_plans.hpp"
#include "knapsack_bound.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

class CompletionBound {
 public:
  enum class Extent : std::uint8_t { kAll, kRoot };

  /// `multipliers` (empty: zeros) warm-starts the ascent of `iterations` subgradient steps; it stops early once the
  /// root value reaches `enough`. kRoot: phi and need will not be asked.
  CompletionBound(const Program& program, const FastestPlans& fastest, std::int64_t longest_period,
                  std::vector<double> multipliers, int iterations, double enough, Extent extent = Extent::kAll);

  /// Lower bound on A + max o over all chains whose stages fit the period; kNoCompletion when there is none.
  [[nodiscard]] double root() const { return root_; }
  /// The same in whole nanoseconds, or what whole stages say (knapsack_bound.hpp) where that is more; they are not
  /// asked where unit prices say `enough`. kNever: there is no chain.
  [[nodiscard]] std::int64_t least_end(std::int64_t enough) const;
  [[nodiscard]] const std::vector<double>& multipliers() const { return lambda_; }
  [[nodiscard]] int depths() const { return depths_; }

  /// phi(blocks left, needed depth), without the refund for units left.
  [[nodiscard]] double phi(int blocks, std::int64_t depth) const {
    return phi_(blocks, std::min<std::int64_t>(depth, depths_));
  }
  /// need(blocks left, needed depth).
  [[nodiscard]] double need(int blocks, std::int64_t depth) const {
    return need_(blocks, std::min<std::int64_t>(depth, depths_));
  }
  /// sum lambda * units, sum w * units of an option.
  [[nodiscard]] double unit_price(int option) const { return at(unit_price_, option); }
  [[nodiscard]] double unit_weight(int option) const { return at(unit_weight_, option); }
  /// Of what is left of the program's resources.
  [[nodiscard]] double refund(std::span<const std::int64_t> left) const { return worth(lambda_, left); }
  [[nodiscard]] double supply(std::span<const std::int64_t> left) const { return worth(weight_, left); }
  /// What the units left can hold in whole stages. Only of kAll, and where there is a root.
  [[nodiscard]] const Capacity& capacity() const { return capacity_; }
  [[nodiscard]] const SolverTuning& tuning() const { return fastest_.tuning(); }
  /// Least latency of any boundary at the cut, both ways.
  [[nodiscard]] double round_trip(int cut) const { return fastest_.round_trip(cut); }
  /// What it answers is remembered: not for several threads. Only where there is a root.
  [[nodiscard]] KnapsackBound& knapsack() const;

 private:
  [[nodiscard]] const SolverCuts& cuts() const { return fastest_.tuning().cuts; }
  void count_nothing();
  [[nodiscard]] bool coverable(Extent extent);
  void ascend(std::vector<double> lambda, int iterations, double enough, Extent extent);
  double relax(const std::vector<double>& option_price, bool with_time, Extent extent, Grid<double>& table);
  [[nodiscard]] std::vector<std::size_t> lists_within() const;
  [[nodiscard]] std::vector<double> cheapest_times(const std::vector<double>& option_price) const;
  [[nodiscard]] std::vector<double> cheapest_units(const std::vector<double>& option_price) const;
  void fill_envelope(const std::vector<double>& cheapest, Extent extent);
  void fill_table(bool with_time, Extent extent, Grid<double>& table) const;
  [[nodiscard]] std::vector<double> usage_of(const std::vector<double>& option_price) const;
  [[nodiscard]] int cheapest_option(std::size_t list, const std::vector<double>& option_price) const;
  [[nodiscard]] std::vector<double> capacity_weights() const;
  [[nodiscard]] std::vector<double> option_prices(const std::vector<double>& prices) const;

  const Program& program_;
  const FastestPlans& fastest_;
  const Capacity capacity_;
  std::vector<std::int64_t> resources_;
  double longest_period_;
  std::vector<std::size_t> within_;  // [row of all tables] first lists at which the option fits the period
  int depths_ = 1;
  Grid<double> phi_;             // by blocks and depth
  Grid<double> need_;            // likewise
  Grid<double> envelope_;        // by signature and depth: cheapest option
  Grid<double> first_envelope_;  // by last and depth, of the first stage
  int reach_ = 0;                // blocks of the longest slice that fits the period
  std::vector<double> lambda_;
  std::vector<double> weight_;
  std::vector<double> unit_price_;
  std::vector<double> unit_weight_;
  double root_ = kNoCompletion;
  mutable std::unique_ptr<KnapsackBound> knapsack_;  // made when it is first asked
};

}  // namespace tangram::chain
