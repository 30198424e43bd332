// From the plan's samples and positions to the job's. Both maps keep order; two places of the plan fall together only
// where no rank's share and no transfer begins or ends between them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "matrix.hpp"
#include "reduction.hpp"

namespace tangram::execute {

/// Of a part whose samples begin at `before`: those of one replica.
[[nodiscard]] Window lane_of(const plan::Part& part, std::int64_t before, std::int64_t lane);

/// Samples of the kept windows of a microbatch, in units of what divides every share and every transfer.
class SampleScale {
 public:
  SampleScale(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline, std::vector<Window> windows);
  [[nodiscard]] bool keeps(std::int64_t first, std::int64_t last) const;
  [[nodiscard]] int at(std::int64_t sample) const;  ///< of a kept window, its end included
  [[nodiscard]] int total() const;

 private:
  std::vector<Window> windows_;
  std::int64_t unit_ = 1;
};

/// Positions of a sequence: the shards of all stages fall on a grid that all of them share; a transfer that begins or
/// ends elsewhere gets a place of its own between two lines of the grid.
class PositionScale {
 public:
  /// `lines` of the grid: a multiple of every cp x tp of the plan.
  PositionScale(const plan::LaunchPlan& plan, int lines);
  [[nodiscard]] int at(std::int64_t tokens, std::int64_t position) const;
  [[nodiscard]] int total() const { return lines_ * cells_; }

 private:
  using Places = std::map<std::int64_t, int>;
  void add_shards(const plan::Part& part, std::int64_t tokens);

  int lines_;
  int cells_ = 1;                          ///< between two lines
  std::map<std::int64_t, Places> places_;  ///< by tokens of a sample
};

}  // namespace tangram::execute
