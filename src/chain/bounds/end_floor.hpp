// How much of something the stages in front of a label add at least. Goes in: a program, the least that every option
// adds with every slice, and a period. Comes out: for every number of blocks left, the least sum over all ways to cover
// them with stages that fit the period, one-way hops between them included. As in completion_bound.hpp, units may be
// priced: the cover then takes no more of the fast units than are left, and any prices give a bound.
//
// Why it matters. Stages in front of a label make its A + sum (F + c) part of the end, and its Lat + sum (T + 2c)
// another:
//
//   forward    A + sum (F + c) + o is no more than the end itself: a label whose A is too late for that is of no use
//   backward   the first part is no more than the second as long as A <= Lat + sum (T - W - F + c): so A counts only
//              where it is larger than Lat plus this floor. Below it, gradient synchronisation hides behind the
//              backward passes still to come.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

class EndFloor {
 public:
  /// `least`: by option and signature, ns; what has no plan is not looked at. Prices are raised in `ascent`
  /// subgradient steps from nothing.
  EndFloor(const Program& program, const Grid<std::int64_t>& least, std::int64_t period, int ascent,
           const SolverTuning& tuning = {});

  /// Price of an option's units, and of all that is left of the program's resources.
  [[nodiscard]] double unit_price(int option) const { return at(option_price_, option); }
  [[nodiscard]] double refund(std::span<const std::int64_t> left) const;
  /// In whole nanoseconds, with the refund of what the stages behind have left over. 0 where nothing covers the blocks.
  [[nodiscard]] std::int64_t rest(int blocks_left, double refund) const;

 private:
  void note_hops();
  void ascend(int steps, const SolverTuning& tuning);
  void fill_cheapest();
  double cover();
  [[nodiscard]] std::vector<double> usage() const;
  void price_options();

  const Program& program_;
  const Grid<std::int64_t>& least_;
  std::int64_t period_;
  std::vector<double> hop_;           // [cut] least one-way latency
  std::vector<double> price_;         // of a resource
  std::vector<double> option_price_;  // at these prices
  std::vector<double> cheapest_;      // [signature]
  std::vector<int> chosen_;           // [signature] the option behind it
  std::vector<int> last_slice_;       // [blocks left] blocks of the last slice of the cover
  std::vector<double> covered_;       // [blocks left] at these prices
  std::vector<double> free_;          // [blocks left] where units cost nothing
};

/// The costs that floors are made of, for all periods.
class EndCosts {
 public:
  explicit EndCosts(const Program& program, const SolverTuning& tuning = {});
  [[nodiscard]] EndFloor forward_at(std::int64_t period, int ascent) const {
    return {program_, forward_, period, ascent, tuning_};
  }
  [[nodiscard]] EndFloor backward_at(std::int64_t period, int ascent) const {
    return {program_, backward_, period, ascent, tuning_};
  }

 private:
  const Program& program_;
  SolverTuning tuning_;
  Grid<std::int64_t> forward_;   // least F of any plan
  Grid<std::int64_t> backward_;  // least T - W - F of any plan
};

}  // namespace tangram::chain
