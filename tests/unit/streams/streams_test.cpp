// Small schedules by hand.
#include "tangram/streams/streams.hpp"

#include "support/catch.hpp"

using namespace tangram;
using streams::PassKind;
using streams::Priority;
using streams::Run;
using streams::Schedule;

namespace {

// GPU 0 for 2, the link for 1, GPU 1 for 3.
PassKind three_steps(int in_flight, std::int64_t passes) {
  return {{{{0, 2, {}}, {2, 1, {0}}, {1, 3, {1}}}}, in_flight, passes, {}};
}

}  // namespace

TEST_CASE("streams: a pass alone takes the sum of its segments, two in flight overlap") {
  const Run alone = streams::run({{1, 1, 1}, {three_steps(1, 3)}});
  CHECK(alone.period(0) == 6);
  CHECK(alone.end == 18);
  // The second begins behind the first on GPU 0: 0-2, 2-3, 3-6 and 2-4, 4-5, 6-9. Then GPU 1 is never idle.
  const Run two = streams::run({{1, 1, 1}, {three_steps(2, 6)}});
  CHECK(two.passes[0][1].end == 9);
  CHECK(two.passes[0][2].begin == 6);
  const Run three = streams::run({{1, 1, 1}, {three_steps(3, 9)}});
  CHECK(three.period(0) == 3);
  CHECK(three.busy == std::vector<double>{18, 27, 9});
  CHECK(three.mean_latency(0) == 9);  // three places, one end every three
}

TEST_CASE("streams: a resource with two servers runs two places") {
  const Schedule schedule{{2}, {{{{{0, 4, {}}}}, 3, 3, {}}}};
  // Places 0 and 2 share a server: the third pass waits.
  const Run run = streams::run(schedule);
  CHECK(run.passes[0][0].end == 4);
  CHECK(run.passes[0][1].end == 4);
  CHECK(run.passes[0][2].end == 8);
  CHECK(run.end == 8);
}

TEST_CASE("streams: passes wait for their arrival, and for a place") {
  const Schedule schedule{{1}, {{{{{0, 2, {}}}}, 1, 3, {1, 1.5, 10}}}};
  const Run run = streams::run(schedule);
  CHECK(run.passes[0][0].begin == 1);
  CHECK(run.passes[0][1].begin == 3);
  CHECK(run.passes[0][2].begin == 10);
  CHECK(run.end == 12);
}

TEST_CASE("streams: the oldest pass goes first, or what was ready first") {
  // Two passes share GPU 0 before and after a link of 1: at 2 the second pass's front (1) is ready since 0, the first
  // one's rest (1) since 2.
  const PassKind kind{{{{0, 1, {}}, {1, 1, {0}}, {0, 1, {1}}}}, 3, 3, {}};
  const Run oldest = streams::run({{1, 1}, {kind}});
  CHECK(oldest.passes[0][0].end == 3);
  const Run first = streams::run({{1, 1}, {kind}}, Priority::kFirstReady);
  CHECK(first.passes[0][0].end == 4);
}
