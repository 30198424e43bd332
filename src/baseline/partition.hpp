// Contiguous cuts of the model's units over stages in a fixed order. Goes in: the time and the memory of any range on
// any stage. Comes out: the cuts whose slowest stage is fastest.
#pragma once

#include <functional>
#include <vector>

namespace tangram::baseline {

struct CutProblem {
  int units = 0;
  int stages = 0;
  std::function<double(int stage, int first, int last)> seconds;  ///< grows with the range
  std::function<bool(int stage, int first, int last)> fits;       ///< once false, false of larger ranges; may be empty
};

/// First unit of each stage, and the end. Every stage gets a block: the embedding and the head stay with one. Empty:
/// there are none that fit. By bisection on the slowest stage's time, which greedy filling decides.
[[nodiscard]] std::vector<int> fastest_cuts(const CutProblem& problem);

/// As equal as possible, more units in the last stages: what Sailor does.
[[nodiscard]] std::vector<int> even_cuts(int units, int stages);

}  // namespace tangram::baseline
