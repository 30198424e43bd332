#include "tangram/prune/frontier.hpp"

#include <algorithm>
#include <tuple>

namespace tangram::prune {
namespace {

bool precedes(const Candidate& a, const Candidate& b) {
  return std::tuple(a.T, a.F, a.A, a.o, -a.W, -a.n_max, a.source) <
         std::tuple(b.T, b.F, b.A, b.o, -b.W, -b.n_max, b.source);
}

}  // namespace

std::vector<Candidate> pareto(std::span<const Candidate> candidates) {
  std::vector<Candidate> sorted(candidates.begin(), candidates.end());
  std::sort(sorted.begin(), sorted.end(), precedes);

  // Whatever dominates a candidate is lexicographically no larger, and equal vectors are neighbours, smallest source
  // first: hence a candidate has to be compared with the survivors before it alone, and no survivor is ever removed.
  // Survivors are kept in place at the front of `sorted`. Neighbours tend to lose to the same survivor: it is asked
  // first.
  std::size_t kept = 0;
  std::size_t last_winner = 0;
  for (const Candidate& candidate : sorted) {
    if (last_winner < kept && dominates(sorted[last_winner], candidate)) continue;
    std::size_t i = 0;
    while (i < kept && !dominates(sorted[i], candidate)) ++i;
    if (i < kept) {
      last_winner = i;
    } else {
      sorted[kept++] = candidate;
    }
  }
  // Copied, so that a short frontier of many candidates does not hold on to their memory.
  return {sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(kept)};
}

}  // namespace tangram::prune
