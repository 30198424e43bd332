// The order of passes: what is in flight, and orders that cannot run.
#include "schedule.hpp"

#include "pass_order.hpp"
#include "support/catch.hpp"
#include "tangram/execute/verify.hpp"
#include "unit/execute/tiny_plan.hpp"

using namespace tangram;
using namespace tangram::execute;

namespace {

std::string text_of(const PassOrder& order) {
  std::string text;
  for (std::int64_t k = 0; k < order.size(); ++k) {
    text += (order.at(k).backward ? "B" : "F") + std::to_string(order.at(k).microbatch) + " ";
  }
  return text;
}

/// Three stages of one rank, four microbatches, with these warm-ups beyond 2, 1, 0.
plan::LaunchPlan three_stages(std::int64_t first, std::int64_t second, std::int64_t third) {
  return tiny::make_plan(tiny::make_model("dddddd"),
                         {{1, 4, {{2, {{{}, 1}}, first}, {4, {{{}, 1}}, second}, {6, {{{}, 1}}, third}}}});
}

}  // namespace

TEST_CASE("1F1B: warm-up, alternation, drain") {
  CHECK(text_of({4, 2}) == "F0 F1 F2 B0 F3 B1 B2 B3 ");
  CHECK(text_of({3, 0}) == "F0 B0 F1 B1 F2 B2 ");
  CHECK(text_of({2, 5}) == "F0 F1 B0 B1 ");
}

TEST_CASE("interleaved: groups take turns in the chunks, backward passes from the last one") {
  std::string text;
  const PassOrder order(3, 3, 2, 2);  // a group of two, then one of one
  for (std::int64_t k = 0; k < order.size(); ++k) {
    const Pass pass = order.at(k);
    text += (pass.backward ? "B" : "F") + std::to_string(pass.microbatch) + (pass.chunk == 0 ? "a " : "b ");
  }
  CHECK(text == "F0a F1a F0b F1b B0b F2a B1b F2b B0a B1a B2b B2a ");
}

TEST_CASE("interleaved: groups longer than the warm-up fits are a deadlock, named pass by pass") {
  plan::LaunchPlan plan =
      tiny::interleaved(tiny::make_plan(tiny::make_model("dddd"), {{1, 4, {{2, {{{}, 1}}}, {4, {{{}, 1}}}}}}), 2, 2);
  const Replay good = replay(plan);
  CHECK(good.findings.empty());
  CHECK(good.most_in_flight == std::vector<std::int64_t>{5, 3});
  plan.group = 3;
  const Replay result = replay(plan);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].code == "deadlock");
  CHECK(result.findings[0].message.find("backward 0 of chunk 1 of stage 1 waits for forward 0 of chunk 1 of stage 1") !=
        std::string::npos);
}

TEST_CASE("a stage holds its warm-up and one more") {
  const Replay classic = replay(three_stages(0, 0, 0));
  CHECK(classic.findings.empty());
  CHECK(classic.most_in_flight == std::vector<std::int64_t>{3, 2, 1});
  // One more before a slow link; the plan's own count goes with it.
  const Replay deeper = replay(three_stages(1, 0, 0));
  CHECK(deeper.findings.empty());
  CHECK(deeper.most_in_flight == std::vector<std::int64_t>{4, 2, 1});
}

TEST_CASE("a count that is not the plan's is named") {
  plan::LaunchPlan plan = three_stages(0, 0, 0);
  plan.stages[1].parts[0].predicted.in_flight = 1;
  const Replay result = replay(plan);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].code == "in-flight-differs");
  CHECK(result.findings[0].where == "stage 1");
  CHECK(result.findings[0].message == "holds 2 microbatches at once, the plan says 1");
}

// Stage 0 wants backward 0 after forward 0; stage 1 first wants two more forward passes.
TEST_CASE("a later stage that warms up longer is a deadlock, named pass by pass") {
  plan::LaunchPlan plan = three_stages(0, 0, 0);
  plan.stages[0].warmup = 0;
  const Replay result = replay(plan);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].code == "deadlock");
  CHECK(result.findings[0].where == "pipeline 0");
  CHECK(result.findings[0].message ==
        "backward 0 of stage 0 waits for backward 0 of stage 1, which comes after forward 1 of stage 1; forward 1 of "
        "stage 1 waits for forward 1 of stage 0, which comes after backward 0 of stage 0");
  // The ranks come to the same end when they are let loose: nobody hangs.
  VerifyOptions unchecked;
  unchecked.check_structure = false;
  const auto executed = verify(plan, unchecked);
  REQUIRE(executed);
  CHECK_FALSE(executed->executed);
  CHECK(executed->findings.back().code == "deadlock");
  CHECK(executed->findings.back().where == "execution");
}
