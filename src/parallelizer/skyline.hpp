// The candidates of one query that no other beats, while more of them come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tangram/prune/frontier.hpp"

namespace tangram::parallelizer {

/// Holds what prune::pareto() would return of all candidates so far, in its order. Of equal vectors the first stays.
class Skyline {
 public:
  /// The most that one held candidate has in flight that is no worse than `candidate` in T, F, A and o; what holds no
  /// more than `least` does not matter, and `least` is the answer if nothing else does. Those no slower than `after`
  /// need not be looked at. The search may end at the first with `enough`. O(held with T in between).
  [[nodiscard]] std::int64_t cover(const prune::Candidate& candidate, std::int64_t least, std::int64_t enough,
                                   std::int64_t after = std::numeric_limits<std::int64_t>::min());

  /// Adds a candidate that is not dominated, and lets go of those it dominates. O(held).
  void insert(const prune::Candidate& candidate);

  void reserve(std::size_t count) { held_.reserve(count); }
  [[nodiscard]] bool empty() const { return held_.empty(); }
  [[nodiscard]] std::span<const prune::Candidate> held() const { return held_; }

 private:
  /// How many held candidates have no larger T: the first so many.
  [[nodiscard]] std::size_t no_slower(std::int64_t T) const;

  std::vector<prune::Candidate> held_;  ///< ascending by (T, F, A, o, -n_max)
  std::size_t last_winner_ = 0;         ///< neighbours in the order of trial tend to lose to the same one
};

}  // namespace tangram::parallelizer
