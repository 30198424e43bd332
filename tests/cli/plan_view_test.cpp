#include "plan_view.hpp"

#include <sstream>

#include "inputs.hpp"
#include "support/catch.hpp"
#include "table.hpp"
#include "tangram/planner/plan.hpp"

using namespace tangram;
using namespace tangram::app;

TEST_CASE("plan view: a strategy names what differs from one GPU") {
  cost::Strategy strategy;
  CHECK(strategy_text(strategy) == "-");
  strategy.degrees = {.tp = 8, .cp = 2, .dp = 4, .ep = 16, .etp = 2, .sequence_parallel = true};
  strategy.policy = {.zero = 1, .recompute = model::RecomputeMode::kFull, .recompute_layers = 3};
  CHECK(strategy_text(strategy) == "tp8+sp cp2 dp4 ep16 etp2 zero1 rc-full:3");
  strategy.degrees = {.tp = 2};
  strategy.policy = {.zero = 0, .recompute = model::RecomputeMode::kSelective, .recompute_layers = 0};
  CHECK(strategy_text(strategy) == "tp2 rc-selective");
}

TEST_CASE("plan view: at most 100 columns, whatever the plan") {
  const auto fleet = load_fleet(std::string(TANGRAM_SOURCE_DIR) + "/tests/cli/inputs/tiny.json");
  const auto model = load_model(std::string(TANGRAM_SOURCE_DIR) + "/tests/cli/inputs/mini.yaml");
  REQUIRE(fleet);
  REQUIRE(model);
  auto planned = planner::make_plan(*fleet, *model, {});
  REQUIRE(planned);
  plan::LaunchPlan& plan = planned->plan;
  plan.stages[0].parts[0].strategy.degrees = {
      .tp = 8, .cp = 16, .dp = 16, .ep = 16, .etp = 8, .sequence_parallel = true};
  plan.stages[0].parts[0].strategy.policy = {
      .zero = 3, .recompute = model::RecomputeMode::kFull, .recompute_layers = 120};
  plan.stages[0].chunks = {{100, 126}};
  plan.stages[0].parts[0].samples = 128 * 16;
  plan.stages[0].parts[0].predicted.peak_memory = Bytes(280LL << 30);
  plan.stages[0].parts[0].predicted.usable_memory = Bytes(285LL << 30);
  plan.stages[0].parts[0].predicted.backward = Nanoseconds(12'345'678'900);
  plan.stages[0].parts[0].predicted.forward = Nanoseconds(6'345'678'900);
  for (auto& island : plan.islands) island.device.name = "A100-80GB-SXM";
  plan.provenance.note = std::string(30, 'x') + " " + std::string(30, 'y') + " " + std::string(60, 'z');
  plan.idle.push_back({"A100-80GB-SXM@rack=r1", 4, "every searched plan with more of them takes longer"});
  std::istringstream lines(plan_for_people(plan, Terminal({})));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(display_width(line) <= 100);
  }
}
