// The simulator against a naive one.
#include "tangram/streams/streams.hpp"

#include <map>
#include <random>
#include <tuple>

#include "naive_run.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::pick;

namespace {

// Times are not whole, so that little happens at one time by chance, and at least one: nothing ends when it begins.
double seconds(std::mt19937_64& random) { return std::uniform_real_distribution<>(1, 5)(random); }

std::vector<streams::Segment> random_segments(std::mt19937_64& random, int resources) {
  std::vector<streams::Segment> segments(static_cast<std::size_t>(pick(random, 1, 8)));
  for (int s = 0; s < static_cast<int>(segments.size()); ++s) {
    streams::Segment& segment = segments[static_cast<std::size_t>(s)];
    segment.resource = pick(random, 0, resources - 1);
    segment.seconds = seconds(random);
    for (int before = 0; before < s; ++before) {
      if (pick(random, 0, 2) == 0) segment.after.push_back(before);
    }
  }
  return segments;
}

streams::Schedule random_schedule(std::mt19937_64& random) {
  streams::Schedule schedule;
  const int resources = pick(random, 1, 4);
  for (int r = 0; r < resources; ++r) schedule.servers.push_back(pick(random, 1, 2));
  const int kinds = pick(random, 1, 2);
  for (int k = 0; k < kinds; ++k) {
    streams::PassKind& kind = schedule.kinds.emplace_back();
    kind.in_flight = pick(random, 1, 4);
    kind.passes = pick(random, 1, 8);
    kind.ways.push_back(random_segments(random, resources));
    if (pick(random, 0, 2) == 0) {
      kind.ways.push_back(random_segments(random, resources));
      kind.turns = {0, 1, 1};
    }
    if (pick(random, 0, 1) == 0) continue;
    double arrival = 0;
    for (std::int64_t i = 0; i < kind.passes; ++i) kind.arrivals.push_back(arrival += seconds(random));
  }
  return schedule;
}

}  // namespace

TEST_CASE("streams: every pass begins and ends as in a naive simulation") {
  std::mt19937_64 random(54);
  for (int i = 0; i < cases(2000); ++i) {
    INFO("case " << i);
    const streams::Schedule schedule = random_schedule(random);
    const streams::Run run = streams::run(schedule);
    const streams::Run naive = naive_run(schedule);
    REQUIRE(run.passes.size() == naive.passes.size());
    for (std::size_t k = 0; k < run.passes.size(); ++k) {
      for (std::size_t p = 0; p < run.passes[k].size(); ++p) {
        CHECK(run.passes[k][p].begin == Approx(naive.passes[k][p].begin).margin(1e-9));
        CHECK(run.passes[k][p].end == Approx(naive.passes[k][p].end).margin(1e-9));
      }
    }
    for (std::size_t r = 0; r < run.busy.size(); ++r) CHECK(run.busy[r] == Approx(naive.busy[r]).margin(1e-9));
    CHECK(run.end == Approx(naive.end).margin(1e-9));
  }
}

TEST_CASE(
    "streams: what is recorded is each segment of each pass once, behind what it waits for, one at a time on a "
    "server") {
  std::mt19937_64 random(55);
  for (int i = 0; i < cases(1000); ++i) {
    INFO("case " << i);
    const streams::Schedule schedule = random_schedule(random);
    const streams::Run run = streams::run(schedule, streams::Priority::kOldestPass, true);
    CHECK(streams::run(schedule).work.empty());
    std::map<std::tuple<int, std::int64_t, int>, const streams::Work*> found;  // by kind, pass and segment
    std::map<std::pair<int, int>, double> free_at;                             // by resource and server
    std::vector<double> busy(schedule.servers.size(), 0);
    for (const streams::Work& work : run.work) {
      const streams::PassKind& kind = schedule.kinds[static_cast<std::size_t>(work.kind)];
      const auto& segments = kind.ways[static_cast<std::size_t>(kind.way_of(work.pass))];
      const streams::Segment& segment = segments[static_cast<std::size_t>(work.segment)];
      CHECK(found.emplace(std::tuple(work.kind, work.pass, work.segment), &work).second);
      CHECK(work.end == Approx(work.begin + segment.seconds));
      for (const int before : segment.after) CHECK(found.at({work.kind, work.pass, before})->end <= work.begin);
      double& free = free_at[{segment.resource, work.server}];
      CHECK(free <= work.begin);
      free = work.end;
      CHECK(work.server < schedule.servers[static_cast<std::size_t>(segment.resource)]);
      busy[static_cast<std::size_t>(segment.resource)] += segment.seconds;
    }
    for (std::size_t r = 0; r < busy.size(); ++r) CHECK(busy[r] == Approx(run.busy[r]).margin(1e-9));
  }
}
