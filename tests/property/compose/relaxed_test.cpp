// The bound without a search, on random fleets and models whose stages the cost model prices: no plan that the searches
// find is faster, and what gives plans more room never raises it.
#include "tangram/relax/relaxed_bound.hpp"

#include <algorithm>
#include <random>
#include <string>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/compose/target.hpp"
#include "tangram/ensemble/ensemble.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

using namespace tangram;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  int below(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  template <std::size_t N>
  std::string of(const char* const (&texts)[N]) {
    return texts[below(static_cast<int>(N))];
  }

 private:
  std::mt19937_64 random_;
};

/// What of a fleet can be made better.
struct Group {
  std::string type;
  int nodes = 1;
  std::string gpus;
  int gbit = 100;
  std::string rack;
};

std::vector<Group> random_groups(Draws& draws) {
  std::vector<Group> groups;
  const int kinds = 1 + draws.below(3);
  for (int k = 0; k < kinds; ++k) {
    groups.push_back({draws.of({"H100-80GB-SXM", "A100-40GB-SXM", "V100-16GB-SXM", "T4"}), 1 + draws.below(4),
                      draws.of({"1", "2", "4", "8"}), 25 << draws.below(5), draws.of({"x", "y"})});
  }
  return groups;
}

cluster::IslandHierarchy islands_of(const std::vector<Group>& groups) {
  std::string nodes;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const Group& g = groups[k];
    nodes += std::string(k == 0 ? "" : ",") + R"({"name": ")" + static_cast<char>('a' + k) + "-[1-" +
             std::to_string(g.nodes) + R"(]", "gpus": [{"type": ")" + g.type + R"(", "count": )" + g.gpus +
             R"(}], "network": {"bandwidth_gbit_s": )" + std::to_string(g.gbit) +
             R"(, "kind": "infiniband"}, "labels": {"rack": ")" + g.rack + R"("}})";
  }
  const auto fleet =
      cluster::read_fleet(R"({"schema": "tangram.cluster/1", "name": "random", "nodes": [)" + nodes +
                              R"(], "links": [{"between": "rack", "bandwidth_gbit_s": 50, "latency_us": 50}]})",
                          "fleet.json");
  INFO((fleet ? "" : render(fleet.error())));
  REQUIRE(fleet);
  return cluster::find_islands(*fleet, 0.10);
}

model::Model random_model(Draws& draws) {
  const std::string experts = draws.below(3) > 0
                                  ? "  ffn_hidden: 5504\n"
                                  : "  moe:\n    experts: 8\n    experts_per_token: 2\n    expert_hidden: 2816\n";
  const std::string text =
      "schema: tangram.model/1\nname: random\narchitecture:\n  vocabulary: 32000\n  hidden: 2048\n"
      "  layers: " +
      draws.of({"2", "5", "8", "12"}) + "\n  heads: 16\n" + experts +
      "training:\n  sequence_length: " + draws.of({"512", "2048", "8192"}) +
      "\n  global_batch_samples: " + draws.of({"1", "4", "7", "24", "96"}) + "\n";
  auto model = model::read_model(text, "model.yaml");
  INFO((model ? "" : render(model.error())));
  REQUIRE(model);
  return *model;
}

void forbid_one(Draws& draws, model::Techniques& allow) {
  bool* const techniques[] = {&allow.tp,
                              &allow.sp,
                              &allow.cp,
                              &allow.ep,
                              &allow.dp,
                              &allow.zero1,
                              &allow.zero2,
                              &allow.zero3,
                              &allow.recompute_selective,
                              &allow.recompute_full,
                              &allow.mixed_stages,
                              &allow.replicas,
                              &allow.pipeline};
  *techniques[draws.below(static_cast<int>(std::size(techniques)))] = false;
}

/// Of any order of the plan's passes with weight gradients apart: a stage works behind the forward passes in front of
/// it.
Nanoseconds zero_bubble_least(const compose::Composition& plan) {
  Nanoseconds least;
  Nanoseconds fill;
  Nanoseconds step;
  for (const compose::StageChoice& stage : plan.stages) {
    least = std::max(least, fill + stage.T * (plan.microbatches - 1) + stage.A);
    fill += stage.F + stage.to_next.latency;
    step = std::max(step, stage.o);
  }
  return least + step;
}

/// Prices are only sought, so that the bound of a wider choice can be found a little better.
bool is_no_more(Nanoseconds wide, Nanoseconds narrow) { return wide.as_double() <= 1.05 * narrow.as_double(); }

}  // namespace

TEST_CASE("property relaxed bound: no plan that is found is faster") {
  Draws draws(73);
  int found = 0;
  int close = 0;
  for (int i = 0; i < cases(60); ++i) {
    model::Model model = random_model(draws);
    const cluster::IslandHierarchy hierarchy = islands_of(random_groups(draws));
    if (draws.below(2) == 0) forbid_one(draws, model.job.allow);
    const auto enumerator = parallelizer::make_enumerator(model);
    const auto layerwise = parallelizer::make_layerwise(model);
    const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get(), layerwise.get()};
    compose::SearchOptions options;
    options.label_budget = 5'000;
    options.timed = true;
    const runtime::Target target = draws.below(4) == 0 ? runtime::Target::kMegatron : runtime::Target::kGeneric;
    const compose::SearchResult result = compose::search_target(target, model, hierarchy, parallelizers, options);
    if (result.best.empty()) continue;
    INFO("case " << i);
    REQUIRE(relax::relaxed_bound(model, hierarchy, false) <= result.relaxed_bound);
    for (const compose::Composition& plan : result.best) REQUIRE(result.relaxed_bound <= plan.closed_form);
    for (const compose::TimedComposition& plan : result.timed) REQUIRE(result.relaxed_bound <= plan.time);
    const Nanoseconds zero_bubble = relax::relaxed_bound(model, hierarchy, true, nullptr, {}, 1, {}, true);
    REQUIRE(is_no_more(zero_bubble, result.relaxed_bound));
    for (const compose::Composition& plan : result.best) {
      if (plan.chunks == 1) REQUIRE(zero_bubble <= zero_bubble_least(plan));
    }
    ++found;
    if (result.best.front().closed_form < result.relaxed_bound * 3 / 2) ++close;
    if (i % 4 != 0 || target != runtime::Target::kGeneric) continue;
    options.incumbent = result.best.front().closed_form * 2;
    const ensemble::EnsembleSearch other = ensemble::search_ensemble(model, hierarchy, parallelizers, options);
    if (other.best) REQUIRE(result.relaxed_bound <= other.best->closed_form);
  }
  CHECK(found >= enough(30));
  CHECK(close >= enough(10));
}

TEST_CASE("property relaxed bound: more of anything never raises it") {
  Draws draws(74);
  for (int i = 0; i < cases(150); ++i) {
    const model::Model model = random_model(draws);
    const std::vector<Group> groups = random_groups(draws);
    const auto bound = [&](const std::vector<Group>& of) { return relax::relaxed_bound(model, islands_of(of), true); };
    const Nanoseconds before = bound(groups);
    INFO("case " << i);
    // Neighbours of a class of one node meet inside it, of a larger class over the network, as the cost model sees
    // them.
    auto more = groups;
    if (more.front().nodes > 1) more.front().nodes *= 2;
    CHECK(is_no_more(bound(more), before));
    auto another = groups;
    another.push_back({"H100-80GB-SXM", 1, "8", 400, "x"});
    CHECK(is_no_more(bound(another), before));
    auto faster = groups;
    for (Group& g : faster) g.gbit *= 4;
    CHECK(is_no_more(bound(faster), before));
    model::Model narrow = model;
    forbid_one(draws, narrow.job.allow);
    CHECK(is_no_more(before, relax::relaxed_bound(narrow, islands_of(groups), true)));
  }
}
