// How little a pipeline can still cost. Goes in: a program and the longest period of a window. Comes out: for every
// (blocks left, depth) a lower bound on the latency of covering them, with units priced by Lagrange multipliers:
//
//   phi(i, d) = min over last slice [i-n, i) and option k of  T_min(k, slice, d) + 2 c_min + sum lambda units + phi(i-n, d+1)
//   bound of a label = Lat + phi(i, n+1) - sum lambda * units left        (weak duality: valid for every lambda >= 0)
//
// T_min(k, slice, d) counts only partial plans that hold d microbatches, so that memory is part of the bound; depths
// beyond `depths` are treated as `depths`, which only weakens it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tangram/compose/program.hpp"

namespace tangram::compose {

inline constexpr double kNoCompletion = std::numeric_limits<double>::infinity();

class CompletionBound {
 public:
  /// `multipliers` (empty: zeros) warm-starts the ascent of `iterations` subgradient steps; it stops early once the
  /// root value reaches `enough`.
  CompletionBound(const Program& program, std::int64_t longest_period, std::vector<double> multipliers, int iterations,
                  double enough);

  /// Lower bound on Lat over all chains whose stages fit the period; kNoCompletion when there is none.
  [[nodiscard]] double root() const { return root_; }
  [[nodiscard]] const std::vector<double>& multipliers() const { return lambda_; }
  [[nodiscard]] int depths() const { return depths_; }

  /// phi(blocks left, needed depth), without the refund for units left.
  [[nodiscard]] double phi(int blocks, std::int64_t depth) const {
    const std::int64_t d = depth < depths_ ? depth : depths_;
    return phi_[static_cast<std::size_t>(blocks) * static_cast<std::size_t>(depths_ + 1) + static_cast<std::size_t>(d)];
  }
  /// sum lambda * units for an option.
  [[nodiscard]] double unit_price(int option) const { return unit_price_[static_cast<std::size_t>(option)]; }
  [[nodiscard]] double refund(const std::vector<int>& units_left) const;
  /// Least latency of any boundary at the cut, both ways.
  [[nodiscard]] double round_trip(int cut) const { return round_trip_[static_cast<std::size_t>(cut)]; }

 private:
  void collect_fastest(std::int64_t longest_period);
  void collect_round_trips();
  double relax(const std::vector<double>& lambda, std::vector<double>& usage);
  [[nodiscard]] std::size_t cell(int blocks, int depth) const {
    return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(depths_ + 1) + static_cast<std::size_t>(depth);
  }

  struct Fastest {  // T_min of one option for one signature and depth
    int option;
    double T;
  };

  const Program& program_;
  int depths_ = 1;
  std::vector<std::vector<Fastest>> fastest_;  // [signature * (depths + 1) + depth]
  std::vector<double> round_trip_;             // [cut]
  std::vector<double> phi_;
  std::vector<double> envelope_;
  std::vector<int> envelope_option_;
  std::vector<int> choice_;                    // [cell] blocks of the slice chosen
  std::vector<double> lambda_;
  std::vector<double> unit_price_;
  double root_ = kNoCompletion;
};

}  // namespace tangram::compose
