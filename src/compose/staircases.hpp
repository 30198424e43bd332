// The fastest plans for growing numbers of microbatches in flight. Goes in: partial plans of a slice, or staircases of
// its parts. Comes out: steps (T, n_max), both ascending: no plan that holds as many is faster than the first step that
// does. All that bounds look at.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::compose {

struct StoredPlan;

/// Of steps in any order.
[[nodiscard]] std::vector<prune::Candidate> staircase(std::vector<prune::Candidate> steps);
[[nodiscard]] std::vector<chain::Drain> staircase(std::vector<chain::Drain> steps);
[[nodiscard]] std::vector<prune::Candidate> staircase(const std::vector<StoredPlan>& plans);

/// Of two that work on the same slice at once: the slower one counts, and what both can hold.
[[nodiscard]] std::vector<prune::Candidate> staircase_of_both(const std::vector<prune::Candidate>& a,
                                                              const std::vector<prune::Candidate>& b);

/// No step of a slice is below it, where the slice is made up of two parts with these and a part holds all that the
/// slice does: times are sums over units, forward and backward rounded up to nanoseconds. `most`: who holds so many
/// microbatches counts as holding any number.
[[nodiscard]] std::vector<prune::Candidate> staircase_of_parts(const std::vector<prune::Candidate>& a,
                                                               const std::vector<prune::Candidate>& b,
                                                               std::int64_t most);

}  // namespace tangram::compose
