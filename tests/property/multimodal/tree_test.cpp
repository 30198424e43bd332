// The closed form of trees beside their timetables: never below where it need not be, and how far above.
#include <algorithm>
#include <array>
#include <string_view>

#include "excess.hpp"
#include "random_graph.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/base/at.hpp"
#include "tangram/multimodal/closed_form.hpp"
#include "tangram/multimodal/timetable.hpp"

using namespace tangram;
using namespace tangram::multimodal;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

constexpr int kTrees = 1000;

struct Study {
  std::string_view name;
  TreeFlavour flavour;
  bool graph_warmup = false;
  std::array<double, 5> most_median{};  ///< by number of microbatches, of the excess
};

// By number of microbatches.
std::array<Excess, 5> excesses(const Study& study, unsigned seed) {
  std::mt19937_64 random(seed);
  std::array<Excess, 5> rows;
  for (int i = 0; i < cases(kTrees); ++i) {
    StageGraph graph = random_tree(random, study.flavour).graph;
    graph.graph_warmup = study.graph_warmup;
    // Memory for a period up to 30 % longer than the slowest stage.
    if (!study.graph_warmup) limit_memory(graph, slowest_stage(graph) * pick(random, 100, 130) / 100, random, 0);
    for (std::size_t m = 0; m < rows.size(); ++m) {
      graph.microbatches = kMicrobatches[m];
      const auto form = closed_form(graph);
      REQUIRE(form.has_value());
      const auto time = timetable(graph, form->in_flight);
      REQUIRE(time.has_value());
      rows[m].add(form->time, *time);
    }
  }
  return rows;
}

// Few trees scatter too much to be held against medians.
void check_rows(const Study& study, const std::array<Excess, 5>& rows) {
  for (std::size_t m = 0; m < rows.size(); ++m) {
    INFO(study.name << ", M = " << kMicrobatches[m] << ", in percent: " << rows[m].text());
    if (!study.flavour.uneven_ratio) CHECK(rows[m].least() >= 0);
    if (cases(kTrees) >= kTrees) CHECK(rows[m].median() <= study.most_median[m]);
  }
}

std::vector<std::int64_t> graph_in_flight(const StageGraph& graph) {
  std::vector<std::int64_t> in_flight = graph_warmups(graph);
  for (std::int64_t& n : in_flight) ++n;
  return in_flight;
}

// How many meetings stages are ahead of who reads them, at most.
std::int64_t meetings_ahead(const StageGraph& graph) {
  const std::vector<std::int64_t> warmups = graph_warmups(graph);
  std::int64_t most = 0;
  for (const Edge& edge : graph.edges) {
    if (at(graph.stages, edge.from).is_frozen()) continue;
    most = std::max(most, std::min(at(warmups, edge.from), graph.microbatches) - at(warmups, edge.to) - 1);
  }
  return most;
}

}  // namespace

// Medians a tenth above those of 20,000 trees (src/multimodal/README.md).
TEST_CASE("no timetable of a tree is above its closed form, and medians are near it") {
  const std::array<Study, 5> studies{{
      {"no latency", {}, false, {0.069, 0.054, 0.033, 0.019, 0.010}},
      {"latency", {.latency = 0.1}, false, {0.057, 0.043, 0.028, 0.016, 0.009}},
      {"frozen encoders", {.latency = 0.1, .frozen = true}, false, {0.054, 0.038, 0.022, 0.012, 0.007}},
      {"graph warm-ups", {.latency = 0.1}, true, {0.056, 0.042, 0.027, 0.016, 0.009}},
      {"uneven ratios", {.uneven_ratio = true}, false, {0.056, 0.045, 0.029, 0.016, 0.009}},
  }};
  unsigned seed = 11;
  for (const Study& study : studies) check_rows(study, excesses(study, seed++));
}

TEST_CASE("where backward passes are uneven, closed forms of trees are hardly ever low, and little") {
  std::mt19937_64 random(21);
  Excess excess;
  int within = 0;
  for (int i = 0; i < cases(4000); ++i) {
    StageGraph graph = random_tree(random, {.uneven_ratio = true}).graph;
    graph.microbatches = pick(random, 2, 64);
    limit_memory(graph, slowest_stage(graph) * pick(random, 100, 130) / 100, random, 0);
    const auto form = closed_form(graph);
    REQUIRE(form.has_value());
    const auto time = timetable(graph, form->in_flight);
    REQUIRE(time.has_value());
    excess.add(form->time, *time);
    std::int64_t forward = 0;
    std::int64_t backward = 0;
    for (const Stage& stage : graph.stages) {
      forward = std::max(forward, stage.plan.F);
      backward = std::max(backward, stage.backward());
    }
    if (forward + backward > form->period) continue;
    INFO("case " << i);
    REQUIRE(form->time >= *time);
    ++within;
  }
  INFO(excess.text());
  CHECK(within >= enough(500));
  CHECK(excess.share_below() <= 0.02);
  CHECK(excess.least() >= -0.02);
}

TEST_CASE("where transfers block, branches much shorter than the longest wait for ever, and closed forms say so") {
  std::mt19937_64 random(23);
  int stuck = 0;
  Excess in_step;
  Excess in_turns;
  for (int i = 0; i < cases(4000); ++i) {
    TreeFlavour flavour;
    flavour.latency = 0.1;
    flavour.frozen = i % 4 == 0;
    StageGraph graph = random_tree(random, flavour).graph;
    graph.graph_warmup = true;
    graph.blocking_transfers = true;
    graph.microbatches = pick(random, 1, 64);
    const auto form = closed_form(graph);
    const auto time = timetable(graph, graph_in_flight(graph));
    const std::int64_t ahead = meetings_ahead(graph);
    INFO("case " << i);
    REQUIRE(time.has_value() == (ahead <= 1));
    REQUIRE(form.has_value() == time.has_value());
    stuck += time ? 0 : 1;
    if (time) (ahead == 1 ? in_turns : in_step).add(form->time, *time);
  }
  INFO("in step: " << in_step.text() << "; in turns: " << in_turns.text());
  CHECK(in_step.least() >= -0.1);
  CHECK(in_step.share_below() <= 0.02);
  CHECK(in_step.median() <= 0.02);
  CHECK(stuck >= enough(400));
  CHECK(in_turns.count() >= static_cast<std::size_t>(enough(500)));
}
