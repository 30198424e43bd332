// Mixtures against everything: every assignment of ZeRO stage and recompute mode to every block of a small slice, and
// of the ZeRO stage to its ends, costed one by one.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "property/random_queries.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using namespace tangram::parallelizer::random_queries;
using tangram::testing::enough;
using tangram::testing::holds;

namespace {

using cost::BlockPolicy;
using cost::RecomputeMode;

std::int64_t time_of(const cost::StageCost& cost) { return (cost.forward + cost.backward).value(); }

/// Degrees, and the ZeRO stage of what is not sharded with ZeRO-3.
using Chain = std::pair<cost::Degrees, int>;

/// The least time by number in flight, from 1 on; max: there is none.
using Staircase = std::vector<std::int64_t>;

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

void note(Staircase& stairs, std::int64_t time, std::int64_t in_flight) {
  const auto most = std::min(in_flight, static_cast<std::int64_t>(stairs.size()));
  for (std::int64_t n = 0; n < most; ++n) {
    auto& least = stairs[static_cast<std::size_t>(n)];
    least = std::min(least, time);
  }
}

/// ZeRO-0 beside ZeRO-3 where that is inside groups as well.
std::vector<int> base_stages(const cost::Degrees& d, const Query& q, const model::Model& model) {
  std::vector<int> stages;
  for (const int zero : {0, 1, 2}) {
    if (may_use(d, zero, q, model) || (zero == 0 && may_use(d, 3, q, model))) stages.push_back(zero);
  }
  return stages;
}

/// What one block can do.
std::vector<BlockPolicy> choices_of(const Query& q, int base, bool shards) {
  std::vector<BlockPolicy> out;
  for (const int zero : shards ? std::vector<int>{base, 3} : std::vector<int>{base}) {
    out.push_back({zero, RecomputeMode::kNone});
    if (q.allow.recompute_selective) out.push_back({zero, RecomputeMode::kSelective});
    if (q.allow.recompute_full) out.push_back({zero, RecomputeMode::kFull});
  }
  return out;
}

/// Calls visit(policy) for every assignment.
template <class Visit>
void each_assignment(const Query& q, int base, bool shards, Visit visit) {
  const std::vector<BlockPolicy> choices = choices_of(q, base, shards);
  const auto blocks = static_cast<std::size_t>(q.slice.block_count());
  const bool ends = q.slice.embedding || q.slice.head;
  std::vector<std::size_t> chosen(blocks, 0);
  for (bool more = true; more;) {
    std::vector<cost::BlockRun> runs;
    for (const std::size_t c : chosen) runs.push_back({1, choices[c]});
    const bool all = std::ranges::all_of(runs, [](const auto& run) { return run.policy.zero == 3; });
    visit(cost::policy_of_runs(!ends && all ? 3 : base, runs));
    if (ends && shards) visit(cost::policy_of_runs(3, runs));
    std::size_t digit = 0;
    while (digit < blocks && ++chosen[digit] == choices.size()) chosen[digit++] = 0;
    more = digit < blocks;
  }
}

std::map<Chain, Staircase> every_chain(const Query& q, const model::Model& model) {
  std::map<Chain, Staircase> out;
  for (const cost::Degrees& degrees : all_degrees(q, model)) {
    const auto units = cost::unit_costs_of(model, q.slice, q.shape, degrees, q.samples);
    if (!units) continue;
    for (const int base : base_stages(degrees, q, model)) {
      Staircase& stairs = out[{degrees, base}];
      stairs.assign(static_cast<std::size_t>(q.max_in_flight), kNone);
      each_assignment(q, base, may_use(degrees, 3, q, model), [&](const cost::MemoryPolicy& policy) {
        if (degrees.dp_replicate > 1 && !policy.shards()) return;
        const auto cost = cost::stage_cost(*units, q.slice, policy);
        note(stairs, time_of(cost), cost::max_in_flight(cost, q.shape.device.usable()));
      });
    }
  }
  return out;
}

/// One to four blocks of few kinds, on one to four GPUs.
Query small_query(const model::Model& model) {
  const int first = *rc::gen::inRange(0, model.block_count());
  const int most = std::min(*rc::gen::element(1, 2, 2, 3, 3, 3, 3, 4), model.block_count() - first);
  const Bytes memory((std::int64_t{*rc::gen::inRange(2, 64)} * 1024 - *rc::gen::inRange(0, 1024)) << 20);
  const auto shape = fixtures::shape(*rc::gen::element(1, 1, 2), *rc::gen::element(1, 2, 2, 4), memory);
  auto q = fixtures::query(model, shape, *rc::gen::element(1, 2, 4, 6), *rc::gen::element(1, 2, 4, 8, 30));
  q.slice = model::signature(model, first, first + most);
  q.allow = random_techniques();
  return q;
}

Outcome solve_layerwise(const model::Model& model, const Query& q) {
  return make_layerwise(model)->solve(std::span(&q, 1)).front();
}

bool is_in(const Chain& chain, const PartialPlan& plan) {
  const cost::MemoryPolicy& policy = plan.strategy.policy;
  const auto own = [&](int zero) { return zero == 3 || zero == chain.second; };
  return chain.first == plan.strategy.degrees && own(policy.zero) &&
         std::ranges::all_of(policy.runs, [&](const auto& run) { return own(run.policy.zero); });
}

struct Counts {
  int mixed = 0;
  int grouped = 0;
  int feasible = 0;
};

/// For each number in flight the fastest of all assignments.
void finds_the_fastest(const model::Model& model, Counts& counts) {
  const auto q = small_query(model);
  const auto all = every_chain(q, model);
  const auto outcome = solve_layerwise(model, q);
  for (const auto& [chain, stairs] : all) {
    for (std::size_t n = 0; n < stairs.size(); ++n) {
      if (stairs[n] == kNone) break;
      const bool found = std::ranges::any_of(outcome.plans, [&](const PartialPlan& plan) {
        return plan.n_max > static_cast<std::int64_t>(n) && time_of(plan.cost) <= stairs[n];
      });
      RC_ASSERT(found);
    }
  }
  for (const PartialPlan& plan : outcome.plans) {
    const auto units = cost::unit_costs(model, q.shape, plan.strategy.degrees, q.samples);
    RC_ASSERT(cost::stage_cost(*units, q.slice, plan.strategy.policy) == plan.cost);
    RC_ASSERT(cost::max_in_flight(plan.cost, q.shape.device.usable()) == plan.n_max);
    const auto n = static_cast<std::size_t>(std::min(plan.n_max, q.max_in_flight) - 1);
    RC_ASSERT(std::ranges::any_of(
        all, [&](const auto& entry) { return is_in(entry.first, plan) && entry.second[n] == time_of(plan.cost); }));
    counts.mixed += plan.strategy.policy.is_mixed() ? 1 : 0;
    counts.grouped += plan.strategy.degrees.dp_replicate > 1 ? 1 : 0;
  }
  counts.feasible += outcome.plans.empty() ? 0 : 1;
  if (outcome.status == OutcomeStatus::kUnsupported) RC_ASSERT(!outcome.message.empty());
}

}  // namespace

TEST_CASE("property layerwise: for each number in flight the fastest of all assignments") {
  Counts counts;
  holds(2000, [&] { finds_the_fastest(random_model(), counts); });
  CHECK(counts.feasible >= enough(1000));
  CHECK(counts.mixed >= enough(300));
  if (testing::cases(2000) == 2000) CHECK(counts.grouped > 0);  // some ten; among fewer cases there may be none
}

TEST_CASE("property layerwise: the same where degrees suit some layers alone") {
  Counts counts;
  holds(1000, [&] { finds_the_fastest(model_with_odd_layers(), counts); });
  CHECK(counts.feasible >= enough(400));
  CHECK(counts.mixed >= enough(80));
}

TEST_CASE("property layerwise: no plan of the enumerator is faster with as much in flight") {
  holds(500, [] {
    const auto model = random_model();
    auto q = random_query(model);
    q.max_in_flight = *rc::gen::element(2, 8, 40);
    const auto mixed = solve_layerwise(model, q);
    const Outcome alike = make_enumerator(model)->solve(std::span(&q, 1)).front();
    for (const PartialPlan& plan : alike.plans) {
      const std::int64_t needed = std::min(plan.n_max, q.max_in_flight);
      RC_ASSERT(std::ranges::any_of(mixed.plans, [&](const PartialPlan& m) {
        return m.n_max >= needed && time_of(m.cost) <= time_of(plan.cost);
      }));
    }
  });
}

TEST_CASE("property layerwise: none of its plans is beaten by another") {
  holds(500, [] {
    const auto model = random_model();
    auto q = random_query(model);
    q.max_in_flight = *rc::gen::element(2, 8, 40);
    const auto vector = [&](const PartialPlan& p) {
      return std::array<std::int64_t, 5>{time_of(p.cost), p.cost.forward.value(), p.cost.gradient_sync.value(),
                                         p.cost.optimizer_step.value(), -std::min(p.n_max, q.max_in_flight)};
    };
    const auto plans = solve_layerwise(model, q).plans;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      for (std::size_t j = 0; j < plans.size(); ++j) {
        const auto a = vector(plans[i]);
        const auto b = vector(plans[j]);
        RC_ASSERT(i == j || !std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>()));
      }
    }
  });
}
