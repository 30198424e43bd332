// What failures of parallelizers are called.
#include "tangram/parallelizer/tally.hpp"

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::parallelizer;

namespace {

Tally tally_of(FailureKind kind, std::string output = {}) {
  Tally tally;
  tally.info.name = "other";
  tally.add(Outcome{});
  Outcome failed;
  failed.status = OutcomeStatus::kFailed;
  failed.failure = Failure{kind, "it ended", std::move(output)};
  tally.add(failed);
  return tally;
}

}  // namespace

TEST_CASE("tally: a failure is an error of its parallelizer, with what it printed last") {
  const std::vector<Tally> tallies{Tally{}, tally_of(FailureKind::kCrashed, "first\nlast\n")};
  CHECK(any_failed(tallies));
  CHECK_FALSE(any_failed({Tally{}}));
  const Diagnostics failures = failures_of(tallies);
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].kind == ErrorKind::kPlugin);
  CHECK(failures[0].code == "parallelizer-failed");
  CHECK(failures[0].message == "parallelizer other failed on 1 of 2 queries: it ended");
  CHECK(failures[0].hint == "its last output: last");
}

TEST_CASE("tally: where only a clock was in the way, the work is incomplete") {
  CHECK(failures_of({tally_of(FailureKind::kTimedOut)})[0].kind == ErrorKind::kIncomplete);
  Tally both = tally_of(FailureKind::kTimedOut);
  both.add(tally_of(FailureKind::kCrashed));
  CHECK(failures_of({both})[0].kind == ErrorKind::kPlugin);
}
