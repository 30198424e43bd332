// Models that are cut at some places alone: the optimum among stages that end there, and what becomes of it afterwards.
#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "cut_points.hpp"
#include "search_case.hpp"
#include "search_truth.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/compose/target.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

constexpr SearchFlavour kDeep{
    .most_classes = 2, .most_gpus = 4, .most_blocks = 12, .least_blocks = 6, .most_batch = 8, .additive = true};

compose::SearchOptions cut_into(std::mt19937_64& random) {
  compose::SearchOptions options;
  options.cuts = {.blocks = 5, .segments = pick(random, 2, 5)};
  return options;
}

std::vector<int> blocks_in_front(const model::Model& model, const compose::CutLimits& limits) {
  const compose::CutPoints cuts(model, compose::cut_spacing(model, limits));
  std::vector<int> blocks;
  for (int cut = 0; cut <= cuts.segments(); ++cut) blocks.push_back(cuts.block(cut));
  return blocks;
}

compose::SearchResult found_between_cuts(const SearchCase& job, const compose::SearchOptions& options) {
  const parallelizer::Parallelizer* const asked[] = {&job.parallelizer};
  return compose::search(*job.model, job.hierarchy, asked, options);
}

struct SeenCuts {
  int chains = 0;
  int worse = 0;  ///< than if stages might end anywhere
};

SeenCuts compare_cuts(const SearchFlavour& flavour, std::uint64_t seed, int count, runtime::Semantics semantics = {},
                      const std::vector<int>& chunks = {1}) {
  std::mt19937_64 random(seed);
  SeenCuts seen;
  for (int i = 0; i < count; ++i) {
    const SearchCase job = random_search_case(random, flavour);
    compose::SearchOptions options = cut_into(random);
    options.constraints.semantics = semantics;
    options.constraints.chunks = chunks;
    const SearchTruth truth(job, semantics, blocks_in_front(*job.model, options.cuts));
    const std::optional<std::int64_t> best = truth.best(options);
    const compose::SearchResult result = found_between_cuts(job, options);
    INFO("seed " << seed << " case " << i);
    REQUIRE(result.best.empty() == !best.has_value());
    if (!best) continue;
    REQUIRE(result.best.front().closed_form.value() == *best);
    REQUIRE(result.optimal);
    REQUIRE(result.search_bound.value() == *best);
    for (const compose::Composition& plan : result.best) {
      REQUIRE(truth.prices(plan).contains(plan.closed_form.value()));
    }
    if (result.best.front().stages.size() > 1) ++seen.chains;
    const std::optional<std::int64_t> anywhere = SearchTruth(job, semantics).best(options);
    // No plan at all is faster than the bound of all plans. Mixed stages split their samples by what segments take, so
    // that finer cuts have other ones, and need not be better.
    REQUIRE(result.relaxed_bound.value() <= *anywhere);
    if (*anywhere < *best) ++seen.worse;
  }
  return seen;
}

}  // namespace

TEST_CASE("the driver's optimum is that of all stages between cuts") {
  SECTION("slices that cost at least what their parts cost") {
    const SeenCuts seen = compare_cuts(kDeep, 61, cases(500));
    CHECK(seen.chains >= enough(20));
    CHECK(seen.worse >= enough(20));
  }
  SECTION("slices with figures of their own") {
    SearchFlavour flavour = kDeep;
    flavour.additive = false;
    flavour.tight_memory = false;
    compare_cuts(flavour, 62, cases(300));
  }
  SECTION("stages of several model chunks") {
    const runtime::Semantics semantics{runtime::Transfers::kForwardBlocking, runtime::Warmup::kClassic};
    compare_cuts(kDeep, 63, cases(200), semantics, {2, 3});
  }
}

TEST_CASE("stages moved by single blocks are those of a plan that may be cut anywhere, and no slower") {
  std::mt19937_64 random(64);
  int moved = 0;
  for (int i = 0; i < cases(400); ++i) {
    const SearchCase job = random_search_case(random, kDeep);
    compose::SearchOptions options = cut_into(random);
    options.timed = true;
    const compose::SearchResult result = found_between_cuts(job, options);
    if (result.best.empty()) continue;
    INFO("case " << i);
    const std::vector<int> cuts = blocks_in_front(*job.model, options.cuts);
    const SearchTruth anywhere(job);
    for (const compose::TimedComposition& timed : result.timed) {
      REQUIRE(anywhere.prices(timed.composition).contains(timed.composition.closed_form.value()));
      const bool is_between = std::ranges::all_of(timed.composition.stages, [&](const compose::StageChoice& stage) {
        return std::ranges::binary_search(cuts, stage.last);
      });
      if (is_between)
        REQUIRE(timed.composition.closed_form >= result.search_bound);
      else
        ++moved;
    }
  }
  CHECK(moved >= enough(10));
}

TEST_CASE("a model whose segments fit nowhere is cut more finely") {
  std::mt19937_64 random(65);
  SearchFlavour flavour = kDeep;
  flavour.additive = false;
  int finer = 0;
  for (int i = 0; i < cases(300); ++i) {
    const SearchCase job = random_search_case(random, flavour);
    const compose::SearchOptions options = cut_into(random);
    const parallelizer::Parallelizer* const asked[] = {&job.parallelizer};
    const auto result = compose::search_target(runtime::Target::kGeneric, *job.model, job.hierarchy, asked, options);
    INFO("case " << i);
    // With their own cuts models have all plans that there are.
    REQUIRE(result.best.empty() == found_between_cuts(job, {}).best.empty());
    if (!result.best.empty() && found_between_cuts(job, options).best.empty()) ++finer;
  }
  CHECK(finer >= enough(5));
}
