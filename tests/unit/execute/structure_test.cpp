// What must hold before anything runs: each mistake in a plan's written form, by its code and its place.
#include "structure.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "unit/execute/tiny_plan.hpp"

using namespace tangram;
using namespace tangram::execute;
using namespace tangram::execute::tiny;

namespace {

/// tp2 dp2 on ranks 0-3, then cp2 dp2 on ranks 4-7; microbatches of 4 samples.
plan::LaunchPlan two_stages() {
  return make_plan(make_model("ddmm"),
                   {{4, 3, {{2, {{{2, 1, 2, 1, 1, false}, 4}}}, {4, {{{1, 2, 2, 2, 1, false}, 4}}}}}});
}

struct Said {
  std::string code, where, message;
};

void check_first(const plan::LaunchPlan& plan, const Said& said) {
  const auto findings = structure_findings(plan);
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().code == said.code);
  CHECK(findings.front().where == said.where);
  CHECK(findings.front().message == said.message);
}

}  // namespace

TEST_CASE("a sound plan has no findings") { CHECK(structure_findings(two_stages()).empty()); }

TEST_CASE("layers in no stage, or in two") {
  plan::LaunchPlan plan = two_stages();
  SECTION("none") {
    plan.stages[0].chunks.front().last = 1;
    check_first(plan, {"layer-range", "pipeline 0", "block 1 is in no stage"});
  }
  SECTION("two") {
    plan.stages[1].chunks.front().first = 1;
    check_first(plan, {"layer-range", "stage 1", "runs block 1 after a stage has run it or a later one"});
  }
  SECTION("no head") {
    plan.stages[1].head = false;
    check_first(plan, {"layer-range", "stage 1", "embedding and head go with the first and the last block"});
  }
}

TEST_CASE("samples that nobody processes") {
  plan::LaunchPlan plan = two_stages();
  SECTION("a microbatch too few") {
    plan.pipelines[0].microbatches = 2;
    check_first(plan, {"microbatch-missing", "pipeline 0", "2 microbatches of 4 are not its 12 samples"});
  }
  SECTION("a pipeline's share") {
    plan.model.job.global_batch = 16;
    check_first(plan, {"batch-share", "plan", "pipelines take 12 samples of a batch of 16"});
  }
  SECTION("a part's share") {
    plan.stages[0].parts[0].samples = 2;
    check_first(plan, {"batch-share", "stage 0", "takes 2 samples of a microbatch of 4"});
  }
}

TEST_CASE("ranks in each other's place, in two places, in none") {
  plan::LaunchPlan plan = two_stages();
  SECTION("swapped") {
    std::swap(plan.ranks[1].tp, plan.ranks[2].tp);
    std::swap(plan.ranks[1].dp, plan.ranks[2].dp);
    std::swap(plan.ranks[1].edp, plan.ranks[2].edp);
    check_first(plan, {"rank-order", "rank 1", "has the coordinates of rank 2"});
  }
  SECTION("outside") {
    plan.ranks[1].tp = 5;
    check_first(plan, {"rank-order", "rank 1", "has coordinates outside of its part"});
  }
  SECTION("another stage") {
    plan.ranks[1].stage = 1;
    check_first(plan, {"rank-order", "rank 1", "stands where stage 0 has its ranks, but says stage 1"});
  }
  SECTION("two places") {
    plan.stages[1].parts[0].first_rank = 3;
    check_first(plan, {"rank-order", "rank 3", "works in two places"});
  }
}

TEST_CASE("degrees that divide nothing") {
  plan::LaunchPlan plan = two_stages();
  SECTION("samples") {
    plan.stages[0].parts[0].samples = 1;
    check_first(plan, {"degrees-invalid", "stage 0", "1 samples are too few for dp 2"});
  }
  SECTION("experts") {
    plan.model.types[1].feed_forward.experts = 7;
    check_first(plan, {"degrees-invalid", "stage 1", "7 experts cannot be divided by ep 2"});
  }
  SECTION("positions") {
    plan.model.types[0].tokens = 1;
    check_first(plan, {"degrees-invalid", "stage 0",
                       "1 positions of a sample are too few for tp x cp = 2: every rank hands over some"});
  }
  SECTION("ZeRO") {
    plan.stages[0].parts[0].strategy.policy.zero = 4;
    check_first(plan, {"degrees-invalid", "stage 0", "ZeRO goes from 0 to 3, recompute to the stage's layers"});
  }
}

// Rank 0 owns samples 0-1, positions 0-31; so does rank 4, with cp in place of tp.
TEST_CASE("transfers that leave out, repeat or miss") {
  plan::LaunchPlan plan = two_stages();
  auto& transfers = plan.boundaries[0].transfers;
  REQUIRE(transfers.front().dst == 4);
  SECTION("shortened by one position") {
    transfers.front().seq_last = 31;
    check_first(plan,
                {"transfer-missing", "boundary 0->1", "rank 0 sends only a part of samples [0, 2), positions [0, 32)"});
  }
  SECTION("twice") {
    transfers.push_back(transfers.front());
    check_first(plan, {"transfer-duplicate", "boundary 0->1", "rank 0 sends something twice"});
  }
  SECTION("to another rank") {
    transfers.front().dst = 5;
    check_first(plan, {"transfer-misdirected", "boundary 0->1", "rank 5 receives what it does not work on"});
  }
  SECTION("no boundary") {
    plan.boundaries.clear();
    check_first(plan, {"transfer-missing", "boundary 0->1", "is not listed"});
  }
}
