// The enumerator against everything: all strategies of a small slice, all numbers of recomputed blocks, costed one by
// one and compared pair by pair.
#include <algorithm>
#include <array>
#include <tuple>

#include "property/random_queries.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using namespace tangram::parallelizer::random_queries;
using tangram::testing::enough;
using tangram::testing::holds;

namespace {

using Vector = std::array<std::int64_t, 5>;  ///< T, F, sync, step, -n_max: smaller is better

Vector vector_of(const cost::StageCost& cost, std::int64_t n_max) {
  return {(cost.forward + cost.backward).value(), cost.forward.value(), cost.gradient_sync.value(),
          cost.optimizer_step.value(), -n_max};
}

bool no_worse(const Vector& a, const Vector& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](std::int64_t x, std::int64_t y) { return x <= y; });
}

struct Plan {
  cost::Strategy strategy;
  cost::StageCost cost;
  std::int64_t n_max = 0;
  Vector vector{};
};

int techniques(const cost::Strategy& s) {
  return (s.degrees.tp > 1) + s.degrees.sequence_parallel + (s.degrees.cp > 1) + (s.degrees.ep > 1) +
         (s.degrees.dp > 1) + (s.policy.zero > 0) + (s.degrees.dp_replicate > 1) +
         (s.policy.recompute != cost::RecomputeMode::kNone);
}

auto simplicity(const cost::Strategy& s) { return std::tuple(techniques(s), s); }

std::vector<cost::MemoryPolicy> all_policies(const cost::Degrees& d, const Query& q, const model::Model& model) {
  std::vector<cost::MemoryPolicy> out;
  for (int zero = 0; zero < 4; ++zero) {
    if (!may_use(d, zero, q, model)) continue;
    out.push_back({zero, cost::RecomputeMode::kNone, 0});
    if (q.allow.recompute_selective) out.push_back({zero, cost::RecomputeMode::kSelective, 0});
    for (int r = 1; q.allow.recompute_full && r <= q.slice.block_count(); ++r) {
      out.push_back({zero, cost::RecomputeMode::kFull, r});
    }
  }
  return out;
}

std::vector<Plan> everything(const Query& q, const model::Model& model, const cost::ProfileSet* profiles = nullptr) {
  std::vector<Plan> out;
  for (const auto& degrees : all_degrees(q, model)) {
    const auto units = cost::unit_costs_of(model, q.slice, q.shape, degrees, q.samples, profiles);
    if (!units) continue;
    for (const auto& policy : all_policies(degrees, q, model)) {
      const auto cost = cost::stage_cost(*units, q.slice, policy);
      const auto n_max = cost::max_in_flight(cost, q.shape.device.usable());
      out.push_back({{degrees, policy}, cost, n_max, vector_of(cost, n_max)});
    }
  }
  return out;
}

/// Vectors of the plans that fit and that no other beats, ascending, each once.
std::vector<Vector> frontier(const std::vector<Plan>& all) {
  std::vector<Vector> out;
  for (const Plan& p : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const Plan& other) {
      return other.n_max >= 1 && other.vector != p.vector && no_worse(other.vector, p.vector);
    });
    if (p.n_max >= 1 && !beaten) out.push_back(p.vector);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Outcome solve(const model::Model& model, const Query& q, const cost::ProfileSet* profiles = nullptr) {
  return make_enumerator(model, profiles)->solve(std::span(&q, 1)).front();
}

/// Curves of any shape for groups that a stage may have: as noisy as can be.
cost::ProfileSet random_curves(const Query& q) {
  cost::Profile profile;
  profile.device = q.shape.device;
  for (int curves = *rc::gen::element(1, 4, 8); curves > 0; --curves) {
    cost::CollectiveCurve curve;
    curve.operation = *rc::gen::element(cost::Exchange::kAllReduce, cost::Exchange::kAllGather,
                                        cost::Exchange::kReduceScatter, cost::Exchange::kAllToAll);
    curve.group = {*rc::gen::element(1, 2, 3, 4, 6, 8), *rc::gen::element(1, 1, 2), *rc::gen::element(1, 1, 2, 4)};
    for (std::int64_t bytes = 1'000'000; bytes < 30'000'000'000; bytes *= 8) {
      curve.points.push_back({Bytes(bytes), Nanoseconds(*rc::gen::inRange(100'000, 100'000'000))});
    }
    profile.collectives.push_back(std::move(curve));
  }
  cost::ProfileSet set;
  set.add(std::move(profile));
  return set;
}

std::vector<Vector> vectors(const Outcome& outcome) {
  std::vector<Vector> out;
  for (const auto& plan : outcome.plans) out.push_back(vector_of(plan.cost, plan.n_max));
  return out;
}

void check_failure(const Outcome& outcome, const std::vector<Plan>& all, const Query& q) {
  if (all.empty()) {
    RC_ASSERT(outcome.status == OutcomeStatus::kUnsupported);
    RC_ASSERT(!outcome.message.empty());
    return;
  }
  RC_ASSERT(outcome.status == OutcomeStatus::kInfeasible);
  const auto leanest = std::min_element(all.begin(), all.end(),
                                        [](const Plan& a, const Plan& b) { return a.cost.peak(1) < b.cost.peak(1); });
  RC_ASSERT(outcome.shortage == leanest->cost.peak(1) - q.shape.device.usable());
}

/// Every returned plan is one of all, and no simpler one has the same vector. Plain tensor parallelism is left out
/// where sequence parallelism is no worse in every unit cost, so these two may change places.
void check_strategies(const Outcome& outcome, const std::vector<Plan>& all) {
  for (const auto& plan : outcome.plans) {
    const auto mine = vector_of(plan.cost, plan.n_max);
    const auto same = std::find_if(all.begin(), all.end(), [&](const Plan& p) { return p.strategy == plan.strategy; });
    RC_ASSERT(same != all.end());
    RC_ASSERT(same->cost == plan.cost);
    RC_ASSERT(same->n_max == plan.n_max);
    for (const Plan& other : all) {
      if (other.vector != mine || (other.strategy.degrees.tp > 1 && !other.strategy.degrees.sequence_parallel))
        continue;
      RC_ASSERT(simplicity(plan.strategy) <= simplicity(other.strategy));
    }
  }
}

/// What the enumerator finds is the frontier of all strategies, each as simple as can be, or why there is none.
Outcome checked_frontier(const model::Model& model, const Query& q) {
  const auto all = everything(q, model);
  auto outcome = solve(model, q);
  const auto expected = frontier(all);
  RC_ASSERT(vectors(outcome) == expected);
  if (expected.empty()) {
    check_failure(outcome, all, q);
  } else {
    RC_ASSERT(outcome.status == OutcomeStatus::kOk);
    check_strategies(outcome, all);
  }
  return outcome;
}

}  // namespace

TEST_CASE("property parallelizer: the frontier is that of all strategies") {
  int feasible = 0;
  int grouped = 0;
  holds(3000, [&] {
    const auto model = random_model();
    const auto q = random_query(model);
    const auto outcome = checked_frontier(model, q);
    if (outcome.plans.empty()) return;
    ++feasible;
    const auto in_groups = [](const PartialPlan& plan) { return plan.strategy.degrees.dp_replicate > 1; };
    grouped += std::ranges::any_of(outcome.plans, in_groups) ? 1 : 0;
  });
  CHECK(feasible >= enough(1000));
  CHECK(grouped >= enough(50));
}

TEST_CASE("property parallelizer: degrees have to suit the layers of the slice alone") {
  int feasible = 0;
  int freer = 0;
  holds(2000, [&] {
    const auto model = model_with_odd_layers();
    const auto q = random_query(model);
    const auto outcome = checked_frontier(model, q);
    if (outcome.plans.empty()) return;
    ++feasible;
    freer += std::ranges::any_of(outcome.plans, [&](const PartialPlan& plan) {
      return !cost::why_unsupported(model, plan.strategy.degrees, q.samples).empty();
    });
  });
  CHECK(feasible >= enough(700));
  CHECK(freer >= enough(200));
}

TEST_CASE("property parallelizer: the frontier is that of all strategies with measured collectives as well") {
  holds(1500, [] {
    const auto model = random_model();
    const auto q = random_query(model);
    const auto curves = random_curves(q);
    RC_ASSERT(vectors(solve(model, q, &curves)) == frontier(everything(q, model, &curves)));
  });
}

TEST_CASE("property parallelizer: with a limit on what is in flight, nothing needed is missing") {
  // Left out may only be what some returned plan replaces for all pipelines with at most that many in flight.
  holds(2000, [] {
    const auto model = random_model();
    auto q = random_query(model);
    q.max_in_flight = *rc::gen::inRange(1, 12);
    const auto found = vectors(solve(model, q));
    for (const Plan& p : everything(q, model)) {
      if (p.n_max < 1) continue;
      Vector needed = p.vector;
      needed[4] = -std::min(p.n_max, q.max_in_flight);
      RC_ASSERT(std::any_of(found.begin(), found.end(), [&](const Vector& v) { return no_worse(v, needed); }));
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (std::size_t j = 0; j < found.size(); ++j) RC_ASSERT(i == j || !no_worse(found[i], found[j]));
    }
  });
}

TEST_CASE("property parallelizer: pruning is safe whatever the replicas add to the synchronisation") {
  // For each strategy some returned plan is no worse in (T, F, A, o, n_max), A being priced with the extra all-reduce.
  holds(500, [] {
    const auto model = random_model();
    const auto q = random_query(model);
    const Nanoseconds extra(*rc::gen::inRange(std::int64_t{0}, std::int64_t{2'000'000'000}));
    const auto priced = [extra](const cost::StageCost& c, std::int64_t n_max) {
      Vector v = vector_of(c, n_max);
      v[2] = v[0] + cost::exposed_sync(c.gradient_sync + extra, c.backward).value();
      return v;
    };
    std::vector<Vector> found;
    for (const auto& plan : solve(model, q).plans) found.push_back(priced(plan.cost, plan.n_max));
    for (const Plan& p : everything(q, model)) {
      if (p.n_max < 1) continue;
      const Vector v = priced(p.cost, p.n_max);
      RC_ASSERT(std::any_of(found.begin(), found.end(), [&](const Vector& f) { return no_worse(f, v); }));
    }
  });
}

TEST_CASE("property parallelizer: forbidding a technique never brings a better plan") {
  holds(500, [] {
    const auto model = random_model();
    auto q = random_query(model);
    const auto forbidden = vectors(solve(model, q));
    q.allow = {};
    const auto allowed = vectors(solve(model, q));
    for (const Vector& v : forbidden) {
      RC_ASSERT(std::any_of(allowed.begin(), allowed.end(), [&](const Vector& a) { return no_worse(a, v); }));
    }
  });
}

TEST_CASE("property parallelizer: what was asked before changes no answer") {
  // The same slices below other upper bounds and with other numbers in flight, in any order, and every one by itself.
  int told_less = 0;
  holds(1000, [&told_less] {
    const auto model = random_model();
    auto q = random_query(model);
    const auto all = solve(model, q);
    const auto asked = make_enumerator(model);
    for (int again = 0; again < 6; ++again) {
      q.max_in_flight = *rc::gen::element(1, 4, 1000);
      q.upper_bound = Nanoseconds::max();
      if (!all.plans.empty() && *rc::gen::element(0, 1, 1) == 1) {
        const cost::StageCost& cost = (*rc::gen::elementOf(all.plans)).cost;
        q.upper_bound = cost.forward + cost.backward - Nanoseconds(*rc::gen::element(0, 0, 1));
      }
      const Outcome known = asked->solve(std::span(&q, 1)).front();
      const Outcome alone = solve(model, q);
      RC_ASSERT(known.status == alone.status);
      RC_ASSERT(known.message == alone.message);
      RC_ASSERT(known.shortage == alone.shortage);
      RC_ASSERT(known.plans.size() == alone.plans.size());
      for (std::size_t i = 0; i < alone.plans.size(); ++i) {
        RC_ASSERT(known.plans[i].strategy == alone.plans[i].strategy);
        RC_ASSERT(known.plans[i].cost == alone.plans[i].cost);
        RC_ASSERT(known.plans[i].n_max == alone.plans[i].n_max);
      }
      if (alone.plans.size() < all.plans.size()) ++told_less;
    }
  });
  CHECK(told_less >= enough(1000));
}

TEST_CASE("property parallelizer: plans slower than wanted are left out, and no others") {
  holds(1000, [] {
    const auto model = random_model();
    auto q = random_query(model);
    const auto all = vectors(solve(model, q));
    if (all.empty()) return;
    const auto bound = (*rc::gen::elementOf(all))[0];
    q.upper_bound = Nanoseconds(bound);
    std::vector<Vector> wanted = all;
    std::erase_if(wanted, [&](const Vector& v) { return v[0] > bound; });
    RC_ASSERT(vectors(solve(model, q)) == wanted);
  });
}
