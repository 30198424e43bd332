// What the host makes of answers: each way to be wrong has a name, and what is right is recomputed.
#include "plugin/recheck.hpp"

#include <fmt/format.h>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using namespace tangram::literals;
using fixtures::dense_model;
using fixtures::query;
using fixtures::shape;

namespace {

/// One stage with four blocks of the fixture, `members` being what else it says.
std::string result(const std::string& members, const std::string& blocks = "4") {
  return fmt::format(R"({{"type":"result","id":1,"plans":[{{"stages":[{{"blocks":{},{}}}]}}]}})", blocks, members);
}

Outcome judged(const std::string& answer, const model::Model& model = dense_model(4), int samples = 8) {
  return Recheck(model, nullptr, "outsider").judge(query(model, shape(1, 4), samples), {answer, std::nullopt});
}

std::string code_of(const Outcome& outcome) {
  REQUIRE(outcome.plans.empty());
  REQUIRE(outcome.rejected.size() == 1);
  return outcome.rejected.front().code;
}

}  // namespace

TEST_CASE("recheck: a plan has the costs that the host computes, whatever it claims") {
  const model::Model model = dense_model(4);
  const Outcome outcome = judged(
      result(R"("degrees":{"tp":2,"dp":2},"zero":1,"forward_ns":9e9,"backward_ns":9e9,"strategy":{"mine":[1,2]})"));
  REQUIRE(outcome.plans.size() == 1);
  const PartialPlan& plan = outcome.plans.front();
  CHECK(plan.parallelizer == "outsider");
  CHECK(plan.opaque == R"({"mine":[1,2]})");
  const cost::Strategy strategy{{.tp = 2, .cp = 1, .dp = 2, .ep = 1, .etp = 1, .sequence_parallel = false},
                                {.zero = 1}};
  CHECK(plan.strategy == strategy);
  const auto units = cost::unit_costs(model, shape(1, 4), strategy.degrees, 8);
  REQUIRE(units);
  CHECK(plan.cost == cost::stage_cost(*units, model::signature(model, 0, 4), strategy.policy));
  REQUIRE(outcome.claimed);
  const double recomputed = (plan.cost.forward + plan.cost.backward).as_double();
  CHECK(outcome.claimed->least == Approx(18e9 / recomputed));
}

TEST_CASE("recheck: the enumerator's own plans pass, all of them, unchanged") {
  const model::Model model = dense_model(4);
  const Query asked = query(model, shape(1, 4, 24_GiB), 8, 16);
  const std::vector<Outcome> own = make_enumerator(model)->solve({&asked, 1});
  std::string plans;
  for (const PartialPlan& plan : own.front().plans) {
    const auto& [d, p] = plan.strategy;
    const char* modes[] = {"none", "selective", "full"};
    std::string recompute = fmt::format(R"({{"mode":"{}")", modes[static_cast<int>(p.recompute)]);
    if (p.recompute_layers > 0) recompute += fmt::format(R"(,"layers":{})", p.recompute_layers);
    plans +=
        fmt::format(R"({}{{"stages":[{{"blocks":[{{"type":"dense","count":4}}],"degrees":{{"tp":{},"cp":{},"dp":{},)"
                    R"("sequence_parallel":{}}},"zero":{},"recompute":{}}}}}]}})",
                    plans.empty() ? "" : ",", d.tp, d.cp, d.dp, d.sequence_parallel, p.zero, recompute);
  }
  const Outcome outcome =
      Recheck(model, nullptr, "copy")
          .judge(asked, {fmt::format(R"({{"type":"result","id":1,"plans":[{}]}})", plans), std::nullopt});
  CHECK(outcome.rejected.empty());
  REQUIRE(outcome.plans.size() == own.front().plans.size());
  CHECK(outcome.plans.size() > 3);
  for (std::size_t i = 0; i < outcome.plans.size(); ++i) {
    CHECK(outcome.plans[i].strategy == own.front().plans[i].strategy);
    CHECK(outcome.plans[i].cost == own.front().plans[i].cost);
    CHECK(outcome.plans[i].n_max == own.front().plans[i].n_max);
  }
}

TEST_CASE("recheck: every way to be wrong has a name") {
  CHECK(code_of(judged(result(R"("degrees":{"dp":4})", "5"))) == "wrong-blocks");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4})", R"([{"type":"moe","count":4}])"))) == "wrong-blocks");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4})",
                              R"([{"type":"dense","count":4},{"type":"dense","count":0}])"))) == "wrong-blocks");
  CHECK(code_of(judged(result(R"("degrees":{"dp":2})"))) == "wrong-gpus");
  CHECK(code_of(judged(result(R"("degrees":{"tp":1048576,"cp":1048576,"dp":1048576})"))) == "wrong-gpus");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4})"), dense_model(4), 3)) == "too-few-samples");
  CHECK(code_of(judged(result(R"("degrees":{"dp":0})"))) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4.5})"))) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":[4])"))) == "malformed");
  CHECK(code_of(judged(result(R"("zero":1)"))) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"zero":4)"))) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"recompute":{"mode":"some"})"))) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"recompute":{"mode":"full","layers":5})"))) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":{"tp":4},"zero":1)"))) == "unsupported");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4,"sequence_parallel":true})"))) == "unsupported");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"forward_ns":-1)"))) == "negative");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"gradient_sync_ns":-1)"))) == "negative");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"forward_ns":"fast")"))) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"forward_ns":1,"backward_ns":1)"))) == "impossible-time");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"static_bytes":1)"))) == "impossible-memory");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"transient_bytes":1e12)"))) == "out-of-memory");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4})"), dense_model(32))) == "wrong-blocks");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4})", "32"), dense_model(32))) == "out-of-memory");
  const std::string two = R"({"type":"result","id":1,"plans":[{"stages":[{"blocks":2},{"blocks":2}]}]})";
  CHECK(code_of(judged(two)) == "several-stages");
  CHECK(code_of(judged(R"({"type":"result","id":1,"plans":[17]})")) == "malformed");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4,"dp_replicate":3},"zero":1)"))) == "unsupported");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4,"dp_replicate":4},"zero":1)"))) == "unsupported");
  CHECK(code_of(judged(result(R"("degrees":{"dp":4,"dp_replicate":2})"))) == "unsupported");
  CHECK(judged(result(R"("degrees":{"dp":4,"dp_replicate":2},"zero":1)")).rejected.empty());
  model::Model grouped = dense_model(4);
  grouped.job.sharding_group = {model::ShardingGroup::Kind::kRanks, 2};
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"zero":1)"), grouped)) == "unsupported");
  CHECK(judged(result(R"("degrees":{"dp":4,"dp_replicate":2},"zero":1)"), grouped).rejected.empty());
  model::Model careful = dense_model(4);
  careful.job.allow.zero1 = false;
  CHECK(code_of(judged(result(R"("degrees":{"dp":4},"zero":1)"), careful)) == "not-allowed");
}

TEST_CASE("recheck: one bad plan takes nothing away from a good one beside it") {
  const Outcome outcome =
      judged(R"({"type":"result","id":1,"plans":[{"stages":[{"blocks":4,"degrees":{"dp":3}}]},)"
             R"({"stages":[{"blocks":4,"degrees":{"dp":4}}]},{"stages":[{"blocks":4,"degrees":{"dp":4}}]}]})");
  CHECK(outcome.plans.size() == 1);  // of equal ones the first
  CHECK(outcome.rejected.size() == 1);
  CHECK(outcome.status == OutcomeStatus::kOk);
}

TEST_CASE("recheck: errors of a plugin") {
  const auto status = [](const std::string& members) { return judged(R"({"type":"error","id":1,)" + members + "}"); };
  const Outcome short_of = status(R"("code":"infeasible","needed_bytes":96636764160,"message":"no")");  // 90 GiB
  CHECK(short_of.status == OutcomeStatus::kInfeasible);
  CHECK(short_of.shortage == 10_GiB);
  CHECK(status(R"("code":"unsupported")").status == OutcomeStatus::kUnsupported);
  const Outcome broken = status(R"("code":"internal","message":"oh")");
  CHECK(broken.status == OutcomeStatus::kFailed);
  CHECK(broken.failure->kind == FailureKind::kRefused);
  CHECK(broken.failure->message == "internal: oh");
  CHECK(judged(R"({"type":"result","id":1})").failure->kind == FailureKind::kProtocol);
}
