// Cuts of a chain of units, against all of them.
#include "partition.hpp"

#include <algorithm>
#include <limits>

#include "support/catch.hpp"

using namespace tangram::baseline;

namespace {

/// The slowest stage of the best cuts in which every stage has a block; infinite when none fit.
double brute_force(const CutProblem& problem, int stage, int first) {
  const double never = std::numeric_limits<double>::infinity();
  const auto time = [&](int last) {
    return problem.fits && !problem.fits(stage, first, last) ? never : problem.seconds(stage, first, last);
  };
  if (stage + 1 == problem.stages) {
    const int least = first + (stage == 0 ? 3 : 2);
    return problem.units < least ? never : time(problem.units);
  }
  double best = never;
  for (int last = first + (stage == 0 ? 2 : 1); last < problem.units - 1; ++last) {
    best = std::min(best, std::max(time(last), brute_force(problem, stage + 1, last)));
  }
  return best;
}

}  // namespace

TEST_CASE("the fastest cuts are those of a brute force") {
  unsigned state = 1;
  const auto random = [&] { return state = state * 1664525U + 1013904223U; };
  for (int round = 0; round < 300; ++round) {
    std::vector<double> units;
    const int count = 4 + static_cast<int>(random() >> 8) % 6;
    for (int u = 0; u < count; ++u) units.push_back(1 + static_cast<double>(random() >> 24));
    const int stages = 1 + static_cast<int>(random() >> 8) % 4;
    std::vector<double> slow;
    for (int s = 0; s < stages; ++s) slow.push_back(1 + static_cast<double>((random() >> 24) % 4));
    const int room = 1 + static_cast<int>(random() >> 8) % count;
    CutProblem problem{count, stages, {}, {}};
    problem.seconds = [&](int s, int first, int last) {
      double sum = 0;
      for (int u = first; u < last; ++u) sum += units[static_cast<std::size_t>(u)];
      return sum * slow[static_cast<std::size_t>(s)];
    };
    if (round % 2 == 0) problem.fits = [&](int, int first, int last) { return last - first <= room; };
    const auto cuts = fastest_cuts(problem);
    const double best = brute_force(problem, 0, 0);
    if (best == std::numeric_limits<double>::infinity()) {
      CHECK(cuts.empty());
      continue;
    }
    REQUIRE(static_cast<int>(cuts.size()) == stages + 1);
    double slowest = 0;
    for (int s = 0; s < stages; ++s) {
      slowest = std::max(slowest,
                         problem.seconds(s, cuts[static_cast<std::size_t>(s)], cuts[static_cast<std::size_t>(s) + 1]));
    }
    CHECK(slowest <= best * (1 + 2e-6));
  }
}

TEST_CASE("even cuts give what remains to the last stages") {
  CHECK(even_cuts(26, 2) == std::vector{0, 13, 26});
  CHECK(even_cuts(34, 8) == std::vector{0, 4, 8, 12, 16, 20, 24, 29, 34});
}
