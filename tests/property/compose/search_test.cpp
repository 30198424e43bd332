// The driver against the minimum over the whole named space, and what must never make its answer worse.
#include "tangram/compose/search.hpp"

#include <tbb/global_control.h>

#include <algorithm>
#include <atomic>

#include "search_case.hpp"
#include "search_truth.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

compose::SearchResult found(const SearchCase& job, const compose::SearchOptions& options = {}) {
  const parallelizer::Parallelizer* const asked[] = {&job.parallelizer};
  return compose::search(*job.model, job.hierarchy, asked, options);
}

std::int64_t optimum(const SearchCase& job, const compose::SearchOptions& options = {}) {
  const compose::SearchResult result = found(job, options);
  if (result.best.empty()) return INT64_MAX;
  REQUIRE(result.optimal);
  return result.best.front().closed_form.value();
}

// What a stage says of itself follows from its parts, and its links give its boundary.
void check_stages(const SearchCase& job, const compose::Composition& plan) {
  const cluster::IslandLevel& level = job.hierarchy.levels[static_cast<std::size_t>(plan.level)];
  const auto members = [&](const compose::PartChoice& part) {
    return std::max(1, part.gpus / level.classes[static_cast<std::size_t>(part.island_class)].gpus_per_member);
  };
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const compose::StageChoice& stage = plan.stages[s];
    Nanoseconds slowest{0};
    Nanoseconds forward{0};
    Nanoseconds step{0};
    for (const compose::PartChoice& part : stage.parts) {
      slowest = std::max(slowest, part.plan.cost.forward + part.plan.cost.backward);
      forward = std::max(forward, part.plan.cost.forward);
      step = std::max(step, part.plan.cost.optimizer_step);
      CHECK(stage.in_flight <= part.plan.n_max * plan.chunks);
    }
    CHECK(stage.T == slowest);
    CHECK(stage.F == forward);
    CHECK(stage.o == step);
    CHECK(stage.T <= plan.period * plan.chunks);
    CHECK(stage.in_flight <= plan.microbatches * plan.chunks);
    if (s + 1 == plan.stages.size() && plan.chunks > 1) continue;  // to the first stage
    if (s + 1 == plan.stages.size()) {
      CHECK(stage.to_next == cost::BoundaryCost{});
      continue;
    }
    const Bytes bytes(model::cut_bytes(*job.model, stage.last) * plan.microbatch);
    const compose::PartChoice& from = stage.parts[static_cast<std::size_t>(stage.link_source)];
    const compose::PartChoice& to = plan.stages[s + 1].parts[static_cast<std::size_t>(stage.link_target)];
    CHECK(cost::boundary_cost(bytes, stage.link_to_next, members(from), from.gpus, members(to), to.gpus) ==
          stage.to_next);
    CHECK(stage.to_next.occupancy <= plan.period);
  }
}

struct Seen {
  int feasible = 0;
  int chains = 0;
  int mixed = 0;
  int replicated = 0;
  int extras = 0;
  int tied = 0;
};

void note(Seen& seen, const SearchCase& job, const compose::Composition& plan) {
  ++seen.feasible;
  if (plan.stages.size() > 1) ++seen.chains;
  if (plan.replicas > 1) ++seen.replicated;
  if (job.model->tied_embeddings && plan.stages.size() > 1) ++seen.tied;
  bool mixed = false;
  bool extra = false;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    mixed = mixed || plan.stages[s].parts.size() > 1;
    extra = extra || plan.stages[s].in_flight > static_cast<std::int64_t>(plan.stages.size() - s);
  }
  if (mixed) ++seen.mixed;
  if (extra) ++seen.extras;
}

Seen compare(const SearchFlavour& flavour, std::uint64_t seed, int count, runtime::Semantics semantics = {},
             const std::vector<int>& chunks = {1}, bool put_off = false) {
  std::mt19937_64 random(seed);
  Seen seen;
  for (int i = 0; i < count; ++i) {
    const SearchCase job = random_search_case(random, flavour);
    const SearchTruth truth(job, semantics);
    compose::SearchOptions options;
    options.constraints.semantics = semantics;
    options.constraints.chunks = chunks;
    options.constraints.put_off = put_off;
    const std::optional<std::int64_t> best = truth.best(options);
    const compose::SearchResult result = found(job, options);
    INFO("seed " << seed << " case " << i);
    REQUIRE(result.best.empty() == !best.has_value());
    if (!best) {
      REQUIRE(result.infeasible.size() == 1);
      continue;
    }
    REQUIRE(result.best.front().closed_form.value() == *best);
    REQUIRE(result.optimal);
    REQUIRE(result.search_bound.value() == *best);
    REQUIRE(result.relaxed_bound.value() <= *best);
    std::int64_t before = 0;
    for (const compose::Composition& plan : result.best) {
      const std::set<std::int64_t> prices = truth.prices(plan, put_off);
      const bool is_best = &plan == &result.best.front();
      // Others may keep backward passes whole that need not be.
      REQUIRE((prices.contains(plan.closed_form.value()) ||
               (put_off && !is_best && *prices.begin() < plan.closed_form.value())));
      REQUIRE(plan.closed_form.value() >= before);
      before = plan.closed_form.value();
      check_stages(job, plan);
    }
    note(seen, job, result.best.front());
  }
  return seen;
}

}  // namespace

TEST_CASE("the driver's optimum is that of the whole space") {
  SECTION("everything at once") {
    const Seen seen = compare({}, 21, cases(2000));
    // What makes the space wide also decides now and then.
    CHECK(seen.feasible >= enough(1000));
    CHECK(seen.chains >= enough(300));
    CHECK(seen.mixed >= enough(70));
    CHECK(seen.replicated >= enough(80));
    CHECK(seen.extras >= enough(80));
    CHECK(seen.tied >= enough(100));
  }
  SECTION("memory for all, fast links") {
    compare({.most_gpus = 4, .tight_memory = false, .slow_links = false}, 22, cases(800));
  }
  SECTION("large batches on two classes") {
    compare({.most_classes = 2, .most_gpus = 4, .most_blocks = 5, .most_batch = 24}, 23, cases(800));
  }
  SECTION("stages that stop for their transfers") {
    const Seen seen = compare({}, 26, cases(1200), {runtime::Transfers::kBlocking, runtime::Warmup::kClassic});
    CHECK(seen.feasible >= enough(500));
    CHECK(seen.chains >= enough(100));
    CHECK(seen.extras == 0);
  }
  SECTION("stages of several model chunks") {
    const runtime::Semantics semantics{runtime::Transfers::kForwardBlocking, runtime::Warmup::kClassic};
    const Seen seen =
        compare({.most_blocks = 8, .least_blocks = 4, .most_batch = 12}, 27, cases(1200), semantics, {2, 3});
    CHECK(seen.feasible >= enough(100));
    CHECK(seen.chains == seen.feasible);
  }
  SECTION("stages of several model chunks, transfers beside the passes") {
    const runtime::Semantics semantics{runtime::Transfers::kOverlapped, runtime::Warmup::kClassic};
    const Seen seen =
        compare({.most_blocks = 8, .least_blocks = 4, .most_batch = 12}, 28, cases(800), semantics, {2, 3});
    CHECK(seen.feasible >= enough(60));
    CHECK(seen.chains == seen.feasible);
  }
  SECTION("weight gradients that are put off") {
    const Seen seen = compare({}, 29, cases(900), {}, {1}, /*put_off=*/true);
    CHECK(seen.feasible >= enough(400));
    CHECK(seen.chains >= enough(100));
    compare({.most_classes = 2, .most_blocks = 9, .least_blocks = 5, .additive = true}, 30, cases(200), {}, {1}, true);
  }
  SECTION("slices that cost at least what their parts cost") {
    compare({.most_classes = 2, .most_blocks = 5, .most_batch = 16, .additive = true}, 24, cases(800));
  }
  SECTION("more blocks than are asked for at once") {
    compare({.most_classes = 2, .most_gpus = 3, .most_blocks = 12, .least_blocks = 9, .additive = true}, 25,
            cases(300));
  }
}

TEST_CASE("an island more never makes the driver's optimum worse") {
  std::mt19937_64 random(31);
  int changed = 0;
  int faster = 0;
  for (int i = 0; i < cases(600); ++i) {
    SearchCase job = random_search_case(random, {.most_classes = 2, .most_gpus = 6});
    const std::size_t k = static_cast<std::size_t>(i) % job.hierarchy.levels.front().classes.size();
    const cluster::IslandClass& before = job.hierarchy.levels.front().classes[k];
    // 2 and 4 islands: the shapes of 3 and 5 contain all of theirs, and a class of several keeps its links.
    if (before.islands.size() != 2 && before.islands.size() != 4) continue;
    const std::int64_t old = optimum(job);
    cluster::IslandHierarchy& hierarchy = job.hierarchy;
    const int members = before.members_per_island;
    hierarchy.levels.front().classes[k].islands.push_back(9);
    if (hierarchy.levels.size() > 1) hierarchy.levels.back().classes[k].members_per_island += members;
    const std::int64_t now = optimum(job);
    CHECK(now <= old);
    ++changed;
    if (now < old) ++faster;
  }
  CHECK(changed >= enough(50));
  CHECK(faster >= enough(10));
}

TEST_CASE("more memory never makes the driver's optimum worse") {
  std::mt19937_64 random(32);
  int faster = 0;
  for (int i = 0; i < cases(300); ++i) {
    SearchCase job = random_search_case(random, {});
    const std::int64_t old = optimum(job);
    job.parallelizer.add_memory(1 + i % 3);
    const std::int64_t now = optimum(job);
    CHECK(now <= old);
    if (now < old) ++faster;
  }
  CHECK(faster >= enough(20));
}

TEST_CASE("forbidding never makes the driver's optimum better, and is obeyed") {
  using Forbid = void (*)(model::Techniques&, compose::SearchOptions&);
  using Breaks = bool (*)(const compose::Composition&);
  struct Rule {
    const char* name;
    Forbid forbid;
    Breaks breaks;
  };
  const auto is_mixed = [](const compose::Composition& plan) {
    return std::any_of(plan.stages.begin(), plan.stages.end(), [](const auto& s) { return s.parts.size() > 1; });
  };
  const Rule rules[] = {
      {"mixed stages", [](auto& allow, auto&) { allow.mixed_stages = false; }, is_mixed},
      {"second parts", [](auto&, auto& options) { options.max_parts = 1; }, is_mixed},
      {"replicas", [](auto& allow, auto&) { allow.replicas = false; }, [](const auto& p) { return p.replicas > 1; }},
      {"a second replica", [](auto&, auto& options) { options.max_replicas = 1; },
       [](const auto& p) { return p.replicas > 1; }},
      {"pipelines", [](auto& allow, auto&) { allow.pipeline = false; },
       [](const auto& p) { return p.stages.size() > 1; }},
  };
  for (const Rule& rule : rules) {
    std::mt19937_64 random(33);
    int slower = 0;
    for (int i = 0; i < cases(120); ++i) {
      const SearchCase job = random_search_case(random, {});
      job.model->job.allow = model::Techniques{};
      const std::int64_t allowed = optimum(job);
      compose::SearchOptions options;
      rule.forbid(job.model->job.allow, options);
      const compose::SearchResult result = found(job, options);
      const std::int64_t forbidden = result.best.empty() ? INT64_MAX : result.best.front().closed_form.value();
      INFO(rule.name << " case " << i);
      CHECK(forbidden >= allowed);
      for (const compose::Composition& plan : result.best) CHECK_FALSE(rule.breaks(plan));
      CHECK(SearchTruth(job).best(options).value_or(INT64_MAX) == forbidden);
      if (forbidden > allowed) ++slower;
    }
    INFO(rule.name);
    CHECK(slower >= enough(5));
  }
}

TEST_CASE("a driver that runs out of budget says so, and its bound still holds") {
  std::mt19937_64 random(34);
  int ended = 0;
  for (int i = 0; i < cases(300); ++i) {
    const SearchCase job = random_search_case(random, {});
    const std::optional<std::int64_t> best = SearchTruth(job).best();
    compose::SearchOptions options;
    options.label_budget = 1 + i % 40;
    options.timed = i % 3 == 0;
    const compose::SearchResult result = found(job, options);
    if (result.best.empty() && best && result.is_out_of_budget()) CHECK(result.search_bound.value() <= *best);
    if (result.best.empty()) continue;
    REQUIRE(best);
    CHECK(result.search_bound.value() <= *best);
    CHECK(result.best.front().closed_form.value() >= *best);
    if (result.optimal) CHECK(result.best.front().closed_form.value() == *best);
    if (!result.optimal) ++ended;
  }
  CHECK(ended >= enough(10));
}

TEST_CASE("a driver whose deadline passes anywhere says so, and its bound still holds") {
  std::mt19937_64 random(37);
  int early = 0;
  int late = 0;
  int whole = 0;
  for (int i = 0; i < cases(600); ++i) {
    const SearchCase job = random_search_case(random, {});
    const std::optional<std::int64_t> best = SearchTruth(job).best();
    compose::SearchOptions options;
    options.timed = i % 3 == 0;
    const compose::SearchResult without = found(job, options);
    std::atomic<int> left = 1 << (i % 15);
    options.deadline = Deadline([&left] { return --left < 0; }, 3);
    const compose::SearchResult result = found(job, options);
    INFO("case " << i);
    if (!options.deadline.is_missed()) {
      ++whole;
      REQUIRE(result.best.size() == without.best.size());
      CHECK(result.optimal == without.optimal);
      CHECK(result.search_bound == without.search_bound);
      CHECK(result.statistics.labels == without.statistics.labels);
      continue;
    }
    if (result.best.empty() && best) {
      ++early;
      REQUIRE(result.is_out_of_budget());
      CHECK(result.infeasible.front().code == "time-over");
      CHECK(result.search_bound.value() <= *best);
    }
    if (result.best.empty()) continue;
    ++late;
    REQUIRE(best);
    CHECK(result.search_bound.value() <= *best);
    CHECK(result.best.front().closed_form.value() >= *best);
    if (result.optimal) CHECK(result.best.front().closed_form.value() == *best);
  }
  CHECK(early >= enough(50));
  CHECK(late >= enough(50));
  CHECK(whole >= enough(50));
}

TEST_CASE("an accepted gap is kept, and the bound below it holds") {
  std::mt19937_64 random(36);
  int spared = 0;
  for (int i = 0; i < cases(400); ++i) {
    const SearchCase job = random_search_case(random, {});
    const std::optional<std::int64_t> best = SearchTruth(job).best();
    compose::SearchOptions options;
    options.accepted_gap = i % 3 == 0 ? 0.3 : 0.03;
    const compose::SearchResult result = found(job, options);
    INFO("case " << i);
    REQUIRE(result.best.empty() == !best.has_value());
    if (!best) continue;
    REQUIRE(result.finished);
    const std::int64_t time = result.best.front().closed_form.value();
    CHECK(result.search_bound.value() <= *best);
    CHECK(chain::of_interest(time, options.accepted_gap) <= result.search_bound.value());
    if (time > *best) ++spared;
  }
  CHECK(spared > 0);
}

TEST_CASE("the driver's answer does not depend on the number of threads") {
  std::mt19937_64 random(35);
  for (int i = 0; i < cases(100); ++i) {
    const SearchCase job = random_search_case(random, {});
    compose::SearchOptions options;
    if (i % 2 == 0) options.label_budget = 20 + i;
    const auto with_threads = [&](std::size_t threads) {
      const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
      return found(job, options);
    };
    const compose::SearchResult one = with_threads(1);
    const compose::SearchResult many = with_threads(4);
    INFO("case " << i);
    REQUIRE(one.best.size() == many.best.size());
    for (std::size_t k = 0; k < one.best.size(); ++k) {
      CHECK(one.best[k].closed_form == many.best[k].closed_form);
      CHECK(one.best[k].replicas == many.best[k].replicas);
      CHECK(one.best[k].microbatch == many.best[k].microbatch);
      CHECK(one.best[k].stages.size() == many.best[k].stages.size());
    }
    CHECK(one.optimal == many.optimal);
    CHECK(one.search_bound == many.search_bound);
    CHECK(one.statistics.programs == many.statistics.programs);
    CHECK(one.statistics.programs_cut == many.statistics.programs_cut);
    CHECK(one.statistics.labels == many.statistics.labels);
    CHECK(one.statistics.states == many.statistics.states);
    CHECK(one.statistics.frontier_plans == many.statistics.frontier_plans);
  }
}
