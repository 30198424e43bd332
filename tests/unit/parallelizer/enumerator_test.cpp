#include <tbb/global_control.h>

#include <algorithm>
#include <tuple>

#include "support/catch.hpp"
#include "tangram/prune/frontier.hpp"
#include "unit/parallelizer/fixtures.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using namespace tangram::parallelizer::fixtures;

namespace {

Outcome solve(const model::Model& model, const Query& query) {
  return make_enumerator(model)->solve(std::span(&query, 1)).front();
}

prune::Candidate vector_of(const PartialPlan& plan) {
  const auto& c = plan.cost;
  return {.T = (c.forward + c.backward).value(),
          .F = c.forward.value(),
          .A = c.gradient_sync.value(),
          .o = c.optimizer_step.value(),
          .n_max = plan.n_max};
}

auto order(const PartialPlan& plan) {
  const auto v = vector_of(plan);
  return std::tuple(v.T, v.F, v.A, v.o, -v.n_max);
}

template <class Uses>
bool any(const Outcome& outcome, Uses uses) {
  return std::any_of(outcome.plans.begin(), outcome.plans.end(), uses);
}

}  // namespace

TEST_CASE("enumerator: one GPU has no degrees and no ZeRO to choose") {
  const auto model = moe_model(2);
  const auto outcome = solve(model, query(model, shape(1, 1), 1));
  REQUIRE(outcome.status == OutcomeStatus::kOk);
  REQUIRE_FALSE(outcome.plans.empty());
  for (const auto& plan : outcome.plans) {
    CHECK(plan.strategy.degrees == cost::Degrees{});
    CHECK(plan.strategy.policy.zero == 0);
    CHECK(plan.parallelizer == "enumerator");
    CHECK(plan.cost.gradient_sync == 0_ns);
  }
}

TEST_CASE("enumerator: plans are sorted, none dominated, none equal, each fits") {
  const auto model = GENERATE(dense_model(8), moe_model(8));
  const auto q = query(model, shape(1, 8), 8, 16);
  const auto outcome = solve(model, q);
  REQUIRE(outcome.status == OutcomeStatus::kOk);
  CHECK(outcome.plans.size() > 1);
  for (std::size_t i = 0; i < outcome.plans.size(); ++i) {
    const auto& plan = outcome.plans[i];
    CHECK(plan.n_max >= 1);
    CHECK(plan.cost.peak(plan.n_max) <= q.shape.device.usable());
    CHECK(plan.cost.peak(plan.n_max + 1) > q.shape.device.usable());
    if (i > 0) CHECK(order(outcome.plans[i - 1]) < order(plan));
    for (std::size_t j = 0; j < outcome.plans.size(); ++j) {
      if (i != j) CHECK_FALSE(prune::dominates(vector_of(outcome.plans[j]), vector_of(plan)));
    }
  }
}

TEST_CASE("enumerator: n_max grows with the recomputed blocks") {
  // One GPU, eight blocks of 218 M parameters and 32000 x 4096 = 131 M twice: 2.0 G parameters of 2 + 4 + 12 bytes are
  // 34 GiB of 80. A block keeps 4096 tokens x 4096 x 2 bytes = 32 MiB when recomputed, some ten times that when not.
  const auto model = dense_model(8);
  const auto outcome = solve(model, query(model, shape(1, 1), 1));
  std::vector<std::pair<int, std::int64_t>> steps;
  for (const auto& plan : outcome.plans) {
    const auto& policy = plan.strategy.policy;
    if (policy.recompute == cost::RecomputeMode::kFull) steps.emplace_back(policy.recompute_layers, plan.n_max);
  }
  std::sort(steps.begin(), steps.end());
  REQUIRE(steps.size() > 1);
  for (std::size_t i = 1; i < steps.size(); ++i) CHECK(steps[i - 1].second < steps[i].second);
  CHECK(steps.back().first == 8);
}

TEST_CASE("enumerator: recompute ends where enough is in flight") {
  // On 80 GiB, eight blocks without recompute hold several microbatches: who never needs more than one gets no
  // recompute.
  const auto model = dense_model(8);
  const auto outcome = solve(model, query(model, shape(1, 1), 1, 1));
  REQUIRE(outcome.plans.size() == 1);
  CHECK(outcome.plans.front().strategy == cost::Strategy{});
  CHECK(outcome.plans.front().n_max > 1);  // reported uncapped
}

TEST_CASE("enumerator: tight memory brings ZeRO and recompute") {
  // 32 blocks: 32 x 218 M + 2 x 131 M = 7.2 G parameters, 18 bytes each: 121 GiB, over eight GPUs 15 GiB. On 16 GiB
  // all that remains is to shard everything, and to recompute.
  const auto model = dense_model(32);
  // With room for everything, the optimizer state of the plan that iterates fastest is what ZeRO-1 still shortens.
  const auto roomy = solve(model, query(model, shape(1, 8, 640_GiB), 8, 1));
  REQUIRE(roomy.status == OutcomeStatus::kOk);
  CHECK(roomy.plans.front().strategy.policy.recompute == cost::RecomputeMode::kNone);

  const auto tight = solve(model, query(model, shape(1, 8, 20_GiB), 8, 32));
  REQUIRE(tight.status == OutcomeStatus::kOk);
  CHECK(any(tight, [](const PartialPlan& p) { return p.strategy.policy.recompute == cost::RecomputeMode::kFull; }));
  for (const auto& plan : tight.plans) {
    const auto& d = plan.strategy.degrees;
    CHECK((plan.strategy.policy.zero > 0 || d.tp == 8));
  }
}

TEST_CASE("enumerator: what does not fit says how much is missing") {
  // Parameters, gradients and optimizer state alone are 34 GiB on the single GPU (see above): 16 GiB lack at least 18.
  const auto model = dense_model(8);
  const auto outcome = solve(model, query(model, shape(1, 1, 16_GiB), 1));
  CHECK(outcome.status == OutcomeStatus::kInfeasible);
  CHECK(outcome.plans.empty());
  CHECK(outcome.shortage > 18_GiB);
  CHECK(outcome.shortage < 26_GiB);
  // With exactly the missing memory it fits, with a byte less it does not.
  CHECK(solve(model, query(model, shape(1, 1, 16_GiB + outcome.shortage), 1)).status == OutcomeStatus::kOk);
  CHECK(solve(model, query(model, shape(1, 1, 16_GiB + outcome.shortage - 1_B), 1)).shortage == 1_B);
}

TEST_CASE("enumerator: no way to split is unsupported, with the reason") {
  // One sample and short sequences leave tp = 4 alone, which is forbidden.
  auto model = dense_model(2);
  auto q = query(model, shape(1, 4), 1);
  q.allow.tp = false;
  q.allow.cp = false;
  const auto outcome = solve(model, q);
  CHECK(outcome.status == OutcomeStatus::kUnsupported);
  CHECK(outcome.message == "no allowed tp x cp x dp makes up 4 GPUs with dp of at most 1 samples");

  // Seven heads can not be divided among four GPUs: the cost model's reason is passed on.
  model.types[0].attention.heads = 7;
  model.types[0].attention.kv_heads = 7;
  q.allow.tp = true;
  const auto heads = solve(model, q);
  CHECK(heads.status == OutcomeStatus::kUnsupported);
  CHECK(heads.message.find("heads") != std::string::npos);
}

TEST_CASE("enumerator: forbidden techniques do not appear, allowed ones that help do") {
  const auto model = moe_model(4);
  const auto q = query(model, shape(2, 4, 48_GiB), 8, 8);
  struct Case {
    bool model::Techniques::* technique;
    bool (*uses)(const PartialPlan&);
  };
  const Case c =
      GENERATE(Case{&model::Techniques::tp, [](const PartialPlan& p) { return p.strategy.degrees.tp > 1; }},
               Case{&model::Techniques::ep, [](const PartialPlan& p) { return p.strategy.degrees.ep > 1; }},
               Case{&model::Techniques::dp, [](const PartialPlan& p) { return p.strategy.degrees.dp > 1; }},
               Case{&model::Techniques::zero1, [](const PartialPlan& p) { return p.strategy.policy.zero == 1; }},
               Case{&model::Techniques::recompute_full,
                    [](const PartialPlan& p) { return p.strategy.policy.recompute == cost::RecomputeMode::kFull; }});
  CHECK(any(solve(model, q), c.uses));
  Query without = q;
  without.allow.*c.technique = false;
  const auto outcome = solve(model, without);
  CHECK_FALSE(any(outcome, c.uses));
}

TEST_CASE("enumerator: experts are spread where there are experts") {
  const auto moe = moe_model(4);
  CHECK(any(solve(moe, query(moe, shape(1, 8), 8)), [](const PartialPlan& p) { return p.strategy.degrees.ep > 1; }));
  const auto dense = dense_model(4);
  CHECK_FALSE(any(solve(dense, query(dense, shape(1, 8), 8, 8)),
                  [](const PartialPlan& p) { return p.strategy.degrees.ep > 1 || p.strategy.degrees.etp > 1; }));
}

TEST_CASE("enumerator: many queries at once, any number of threads, same answers") {
  const auto model = model_of({dense_block(), moe_block()}, {0, 0, 1, 1, 1, 1});
  std::vector<Query> queries;
  for (const auto& s : {shape(1, 2), shape(1, 8), shape(2, 4, 24_GiB), shape(4, 1)}) {
    for (const int samples : {1, 4, 8}) {
      for (int last = 1; last <= 6; ++last) {
        auto q = query(model, s, samples, 8);
        q.slice = model::signature(model, 0, last);
        queries.push_back(q);
      }
    }
  }
  const auto enumerator = make_enumerator(model);
  const auto solve_with = [&](std::size_t threads) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    return enumerator->solve(queries);
  };
  const auto one = solve_with(1);
  const auto four = solve_with(4);
  REQUIRE(one.size() == queries.size());
  REQUIRE(four.size() == queries.size());
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto alone = solve(model, queries[q]);
    for (const auto* other : {&four[q], &alone}) {
      REQUIRE(one[q].status == other->status);
      REQUIRE(one[q].message == other->message);
      REQUIRE(one[q].plans.size() == other->plans.size());
      for (std::size_t i = 0; i < one[q].plans.size(); ++i) {
        CHECK(one[q].plans[i].strategy == other->plans[i].strategy);
        CHECK(one[q].plans[i].cost == other->plans[i].cost);
      }
    }
  }
}
