// What granularity gives where links cost something: an 8B model on an A100 and an L40S, over ideal replicas.
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tables.hpp"
#include "tangram/disaggregate/solve.hpp"

using namespace tangram;
using namespace tangram::tests;
using disaggregate::Link;
using disaggregate::Objective;

namespace {

constexpr Link kFree{};
constexpr Link kStaged{23e9, 15e-6, 5e-6};  // through the hosts' memory
constexpr Link kEthernet{3.1e9, 5e-6, 2e-6};
constexpr Link kNear{200e9, 3e-6, 1e-6};

struct Gain {
  std::string phase;
  int requests = 0;
  Link link;
  double over_replicas = 0;  // of a plan that the study's heuristic found
  double proven = 0;         // the study's bound on all plans, up to 3.6 % above that one
};

struct Pass {
  std::string phase;
  int requests = 0;
  Link link;
  double over_fastest = 0;  // latency, over that of the A100
};

}  // namespace

TEST_CASE("disaggregate links: throughput over replicas") {
  const std::vector<Gain> rows = {
      {"decode", 1, kFree, 1.075, 1.084},        {"decode", 1, kInfiniBand, 1.049, 1.058},
      {"decode", 1, kStaged, 1.021, 1.031},      {"decode", 8, kFree, 1.122, 1.133},
      {"decode", 8, kInfiniBand, 1.095, 1.102},  {"decode", 8, kStaged, 1.065, 1.083},
      {"decode", 8, kEthernet, 1.088, 1.105},    {"decode", 32, kFree, 1.064, 1.071},
      {"decode", 32, kInfiniBand, 1.042, 1.054}, {"decode", 32, kStaged, 1.026, 1.040},
      {"decode", 128, kFree, 1.032, 1.039},      {"decode", 128, kInfiniBand, 1.026, 1.032},
      {"decode", 128, kStaged, 1.012, 1.026},    {"prefill", 1, kFree, 1.056, 1.069},
      {"prefill", 1, kInfiniBand, 1.017, 1.041}, {"prefill", 1, kStaged, 1.007, 1.037},
      {"prefill", 1, kEthernet, 0.982, 1.017},   {"prefill", 4, kFree, 1.058, 1.068},
      {"prefill", 4, kInfiniBand, 1.020, 1.054}, {"prefill", 4, kStaged, 1.019, 1.051},
      {"prefill", 4, kEthernet, 0.993, 1.017},
  };
  for (const Gain& row : rows) {
    const disaggregate::Problem problem =
        model_problem({.phase = row.phase, .requests = row.requests, .link = row.link});
    const disaggregate::Solution solution = disaggregate::solve(problem, Objective::kThroughput);
    INFO(row.phase << ' ' << row.requests << " at " << row.link.bytes_per_second << " bytes/s");
    REQUIRE(solution.found);
    const double gain = replica_period(problem) / solution.value;
    const double bound = replica_period(problem) / solution.bound;
    INFO("gain " << gain << ", bound " << bound);
    constexpr double kRounded = 0.0005;
    CHECK(gain >= row.over_replicas - kRounded);
    CHECK(solution.gap() < 0.01);
    CHECK(gain <= bound);
    CHECK(bound <= row.proven + kRounded);
  }
}

TEST_CASE("disaggregate links: a pass is seldom quicker than on the fastest GPU") {
  const std::vector<Pass> rows = {
      {"decode", 1, kInfiniBand, 1},  {"decode", 8, kNear, 0.944},    {"decode", 8, kInfiniBand, 0.980},
      {"decode", 8, kStaged, 1},      {"decode", 32, kInfiniBand, 1}, {"decode", 128, kInfiniBand, 1},
      {"prefill", 1, kInfiniBand, 1}, {"prefill", 4, kInfiniBand, 1}, {"decode", 8, kFree, 0.907},
  };
  for (const Pass& row : rows) {
    INFO(row.phase << ' ' << row.requests << " at " << row.link.bytes_per_second << " bytes/s");
    const disaggregate::Problem problem =
        model_problem({.phase = row.phase, .requests = row.requests, .link = row.link});
    const disaggregate::Solution solution = disaggregate::solve(problem, Objective::kLatency);
    REQUIRE(solution.found);
    CHECK(solution.value / seconds_on_each(problem).front() == Approx(row.over_fastest).margin(0.0005));
    CHECK(solution.gap() < 1e-6);
    const auto on_l40s = std::ranges::count(solution.placement, 1);
    CHECK((on_l40s > 0) == (row.over_fastest < 1));
  }
}
