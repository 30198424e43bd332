// What trying a strategy space has shown. Searches ask for the same slice on the same shape again: at other microbatch
// sizes, in mixed stages, in a second pass. Goes in: the strategies that were not dominated, by their places in the
// space. Comes out: the same for a query that allows no slower ones. Costs are worked out anew, so that an answer takes
// a few hundred bytes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "family.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

class KnownAnswers {
 public:
  /// What was found for the slice with as many in flight, slower plans than the query wants among it.
  [[nodiscard]] std::optional<std::vector<Member>> recall(const Query& query) const;
  /// `complete`: nothing was left out for being slower than the query wants.
  void remember(const Query& query, std::vector<Member> found, bool complete);

 private:
  struct Answer {
    Nanoseconds upper_bound;  ///< of what was looked for
    std::vector<Member> found;
  };
  using Key = std::pair<std::int64_t, model::SliceSignature>;  ///< most in flight, slice
  /// Slices that begin alike mostly differ in their number of runs: that spares comparing these one by one.
  struct Before {
    bool operator()(const Key& a, const Key& b) const {
      if (a.first != b.first) return a.first < b.first;
      if (a.second.runs.size() != b.second.runs.size()) return a.second.runs.size() < b.second.runs.size();
      return a.second < b.second;
    }
  };

  mutable std::mutex mutex_;
  std::map<Key, Answer, Before> answers_;
};

}  // namespace tangram::parallelizer
