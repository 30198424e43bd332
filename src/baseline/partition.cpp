#include "partition.hpp"

#include <algorithm>
#include <cmath>

namespace tangram::baseline {

namespace {

constexpr double kPrecision = 1e-6;  // of the period, relative

/// Each stage takes as much as it may; nothing when the units do not all find a place.
std::vector<int> filled(const CutProblem& problem, double period) {
  std::vector<int> cuts(1, 0);
  for (int s = 0; s < problem.stages; ++s) {
    const int first = cuts.back();
    const bool closing = s + 1 == problem.stages;
    // The first stage has the embedding and a block, every later one leaves a block for each behind it, and the head.
    int last = first + (s == 0 ? 2 : 1) + (closing ? 1 : 0);
    const int most = closing ? problem.units : problem.units - 1 - (problem.stages - 1 - s);
    const auto good = [&](int end) {
      return problem.seconds(s, first, end) <= period && (!problem.fits || problem.fits(s, first, end));
    };
    if (last > most || !good(last)) return {};
    while (last < most && good(last + 1)) ++last;
    cuts.push_back(last);
  }
  return cuts.back() == problem.units ? cuts : std::vector<int>{};
}

}  // namespace

std::vector<int> fastest_cuts(const CutProblem& problem) {
  double slow = 0;
  for (int s = 0; s < problem.stages; ++s) slow = std::max(slow, problem.seconds(s, 0, problem.units));
  if (!std::isfinite(slow)) return {};
  std::vector<int> best = filled(problem, slow);
  if (best.empty()) return best;
  for (double fast = 0; slow - fast > kPrecision * slow;) {
    const double middle = (fast + slow) / 2;
    auto cuts = filled(problem, middle);
    if (cuts.empty()) {
      fast = middle;
      continue;
    }
    best = std::move(cuts);
    slow = middle;
  }
  return best;
}

std::vector<int> even_cuts(int units, int stages) {
  std::vector<int> cuts(1, 0);
  for (int s = 0; s < stages; ++s) cuts.push_back(cuts.back() + (units + s) / stages);
  return cuts;
}

}  // namespace tangram::baseline
