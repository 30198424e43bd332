#include "plans.hpp"

namespace tangram::exporting::example {

using namespace tangram::plan::example;

plan::LaunchPlan equal_stages() {
  World world = make_world();
  const auto alike = strategy(2, 1, 4, 1, 1, 1);
  const std::vector<StageSpec> stages{{3, {{0, 8, 4, alike}}}, {8, {{0, 8, 4, alike}}}};
  return make_plan(world, make_composition(world, 1, 4, 2, stages));
}

plan::LaunchPlan replicas() {
  World world = make_world();
  const auto alike = strategy(2, 1, 2, 1, 1, 1);
  const std::vector<StageSpec> stages{{3, {{0, 4, 4, alike}}}, {8, {{0, 4, 4, alike}}}};
  return make_plan(world, make_composition(world, 2, 4, 2, stages));
}

plan::LaunchPlan unequal_stages() {
  World world = make_world();
  auto last = strategy(1, 1, 4, 4, 1, 1);
  last.policy.recompute = cost::RecomputeMode::kFull;
  last.policy.recompute_layers = 1;
  const std::vector<StageSpec> stages{
      {4, {{0, 8, 4, strategy(2, 1, 4, 1, 1, 1)}}}, {6, {{1, 4, 4, strategy(4, 1, 1, 4)}}}, {8, {{1, 4, 4, last}}}};
  return make_plan(world, make_composition(world, 1, 4, 2, stages));
}

plan::LaunchPlan plain_stages() {
  World world = make_world();
  world.model.types.resize(1);
  world.model.blocks.assign(8, 0);
  auto plain = strategy(2, 1, 2);
  plain.degrees.sequence_parallel = false;
  return make_plan(world, make_composition(world, 1, 4, 2, {{3, {{0, 4, 4, plain}}}, {8, {{0, 4, 4, plain}}}}));
}

plan::LaunchPlan llama_pipelines() {
  World world = make_world();
  world.model.types.resize(1);
  world.model.types.front().tokens = 4096;
  world.model.job.sequence_length = 4096;
  world.model.blocks.assign(8, 0);
  const std::vector<StageSpec> stages{{5, {{0, 2, 2, strategy(2, 1, 1)}}}, {8, {{1, 4, 2, strategy(4, 1, 1)}}}};
  return make_plan(world, make_composition(world, 2, 2, 2, stages));
}

}  // namespace tangram::exporting::example
