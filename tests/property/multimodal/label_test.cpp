// Labels of modules, joined, against the closed form of the whole tree.
#include "tangram/multimodal/label.hpp"

#include <algorithm>

#include "random_graph.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/multimodal/closed_form.hpp"

using namespace tangram;
using namespace tangram::multimodal;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

// Stages of one module, and the boundaries behind them but for those that leave the language model.
struct Part {
  std::vector<Stage> stages;
  std::vector<Price> hops;
  std::vector<InFlight> allowed;
};

class Joiner {
 public:
  explicit Joiner(const RandomTree& tree) : tree_(tree), warmups_(graph_warmups(tree.graph)) {}

  // nullopt: the tree does not keep the period, or memory does not hold it.
  [[nodiscard]] std::optional<std::int64_t> time_at(std::int64_t period) const {
    const auto language = language_at(period);
    if (!language) return std::nullopt;
    BranchLabel branches;
    for (const auto& encoder : tree_.encoders) {
      const Part part = part_of(encoder);
      const auto label = branch_label(part.stages, part.hops, period, part.allowed, tree_.graph.microbatches);
      if (!label) return std::nullopt;
      branches = join(branches, *label);
    }
    if (!fits(branches, *language)) return std::nullopt;
    return joined_time(branches, *language, tree_.graph.microbatches, period);
  }

 private:
  [[nodiscard]] std::optional<Label> language_at(std::int64_t period) const {
    const std::int64_t microbatches = tree_.graph.microbatches;
    Label behind;
    for (const auto& generator : tree_.generators) {
      const Part part = part_of(generator);
      const auto label = chain_label(part.stages, part.hops, {}, period, part.allowed, microbatches);
      const Price& price = hop(tree_.language.back(), generator.front());
      if (!label || price.occupancy > period) return std::nullopt;
      behind = fork(behind, across(*label, price));
    }
    Part part = part_of(tree_.language);
    part.hops.resize(part.stages.size() - 1);
    return chain_label(part.stages, part.hops, behind, period, part.allowed, microbatches);
  }

  [[nodiscard]] Part part_of(const std::vector<int>& stages) const {
    Part part;
    for (const int s : stages) {
      const Stage& stage = tree_.graph.stages[static_cast<std::size_t>(s)];
      part.stages.push_back(stage);
      const auto warmup =
          tree_.graph.graph_warmup ? std::optional(warmups_[static_cast<std::size_t>(s)]) : std::nullopt;
      part.allowed.push_back(in_flight_of(stage, tree_.graph.microbatches, warmup));
      const auto leaves = std::ranges::find(tree_.graph.edges, s, &Edge::from);
      if (leaves != tree_.graph.edges.end()) part.hops.push_back(leaves->price);
    }
    return part;
  }

  [[nodiscard]] const Price& hop(int from, int to) const {
    return std::ranges::find_if(tree_.graph.edges, [&](const Edge& e) { return e.from == from && e.to == to; })->price;
  }

  const RandomTree& tree_;
  std::vector<std::int64_t> warmups_;
};

}  // namespace

TEST_CASE("joined labels are the closed form of the tree: at its period, and at none that is shorter") {
  std::mt19937_64 random(31);
  int none = 0;
  int longer = 0;
  for (int i = 0; i < cases(20000); ++i) {
    TreeFlavour flavour;
    flavour.scale = i % 2 == 0 ? pick(random, 3, 30) : 1e6;
    flavour.latency = pick(random, 0, 2) * 0.4;
    flavour.frozen = i % 5 == 0;
    flavour.uneven_ratio = i % 3 == 0;
    flavour.occupied_links = i % 2 == 0;
    RandomTree tree = random_tree(random, flavour);
    StageGraph& graph = tree.graph;
    graph.microbatches = pick(random, 1, 20);
    graph.graph_warmup = i % 7 < 3;
    const std::int64_t period = slowest_stage(graph) * pick(random, 95, 250) / 100;
    limit_memory(graph, period, random, graph.graph_warmup ? 4 : 1);
    const Joiner joiner(tree);
    const auto form = closed_form(graph);
    INFO("case " << i);
    none += form ? 0 : 1;
    const std::int64_t tried = form ? form->period : 4 * period + 1000 * slowest_stage(graph);
    REQUIRE(joiner.time_at(tried).has_value() == form.has_value());
    if (!form) continue;
    REQUIRE(joiner.time_at(form->period) == form->time);
    if (form->period > 1) REQUIRE_FALSE(joiner.time_at(form->period - 1).has_value());
    const std::int64_t more = pick(random, 1, 50);
    REQUIRE(joiner.time_at(form->period + more) == form->time + (graph.microbatches - 1) * more);
    longer += form->period > slowest_stage(graph) ? 1 : 0;
  }
  CHECK(none >= enough(300));
  CHECK(longer >= enough(3000));
}
