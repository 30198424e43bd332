// What a parallelizer did in one search. Goes in: its outcomes, in the order of the queries. Comes out: counts, and of
// each kind of rejection and failure the first example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

struct CountedReason {
  std::string code;
  std::int64_t count = 0;
  std::string example;  ///< message of the first
};

struct Tally {
  ParallelizerInfo info;
  std::int64_t queries = 0;
  std::int64_t plans = 0;                ///< accepted
  std::int64_t infeasible = 0;           ///< queries
  std::int64_t unsupported = 0;          ///< queries
  std::vector<CountedReason> rejected;   ///< plans, by code
  std::vector<CountedReason> failed;     ///< queries, by kind
  std::optional<Failure> first_failure;  ///< with what it printed
  bool timed_out = false;                ///< some query did: the answer may be another on a faster machine
  std::optional<ClaimRange> claimed;

  void add(const Outcome& outcome);
  /// Adds what a later search of the same parallelizer did.
  void add(const Tally& later);
  [[nodiscard]] std::int64_t failures() const;
};

[[nodiscard]] bool any_failed(const std::vector<Tally>& tallies);

/// One line: "parallelizer a failed on 2 of 40 queries: ...". Requires failures.
[[nodiscard]] std::string failure_text(const Tally& tally);

/// One error for each that failed, with the last line it printed as hint: kIncomplete where time alone was short,
/// kPlugin otherwise.
[[nodiscard]] Diagnostics failures_of(const std::vector<Tally>& tallies);

}  // namespace tangram::parallelizer
