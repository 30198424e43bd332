#include <vector>
#include "support/catch.hpp"

#include "tangram/evolve/decision.hpp"

using namespace tangram::evolve;

namespace {

constexpr double kTwoPercent = 0.02;

}  // namespace

TEST_CASE("a plan that fits is kept below the least gain") {
  // 100 / 98.5 - 1 = 1.5 %.
  const std::vector<Candidate> one{{98.5, 4}};
  const Decision d = decide(100, one, kTwoPercent);
  CHECK_FALSE(d.change);
  CHECK(d.best_gain == Approx(100 / 98.5 - 1));
  CHECK(d.gain == 0);
}

TEST_CASE("a gain of just the least is worth the change; none is not, whatever the least") {
  CHECK(decide(102, std::vector<Candidate>{{100, 1}}, kTwoPercent).change == 0U);
  CHECK_FALSE(decide(100, std::vector<Candidate>{{100, 1}}, 0).change);
  CHECK_FALSE(decide(100, std::vector<Candidate>{{101, 1}}, 0).change);
}

TEST_CASE("of the plans near the best the one that moves fewest GPUs is taken") {
  // Best 90; within 2 %: up to 91.8. 91.5 moves less than 90 and 91; 92 moves nothing but is too far.
  const std::vector<Candidate> all{{90, 48}, {91, 16}, {91.5, 8}, {92, 0}};
  const Decision d = decide(100, all, kTwoPercent);
  CHECK(d.change == 2U);
  CHECK(d.gain == Approx(100 / 91.5 - 1));
  CHECK(d.best_gain == Approx(100.0 / 90 - 1));
}

TEST_CASE("a plan near the best is only taken when it is worth the change itself") {
  // 100 / 97.9 - 1 = 2.1 %, but 100 / 99 - 1 = 1.0 %, though 99 is within 2 % of 97.9.
  const std::vector<Candidate> all{{97.9, 48}, {99, 1}};
  CHECK(decide(100, all, kTwoPercent).change == 0U);
}

TEST_CASE("without an old plan that fits there is always a change; equals are taken in order") {
  const std::vector<Candidate> all{{120, 3}, {120, 3}, {119, 3}};
  const Decision d = decide(std::nullopt, all, kTwoPercent);
  CHECK(d.change == 2U);
  CHECK(d.gain == 0);
  CHECK(decide(std::nullopt, std::vector<Candidate>{{120, 3}, {120, 3}}, kTwoPercent).change == 0U);
}

TEST_CASE("nothing to choose from keeps") { CHECK_FALSE(decide(100, {}, kTwoPercent).change); }
