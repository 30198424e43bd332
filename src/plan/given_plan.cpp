#include "tangram/plan/given_plan.hpp"

#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::plan {

void GivenPlacement::add_stage(const std::vector<model::BlockRange>& chunks, std::int64_t in_flight) {
  pipeline.stages.push_back({chunks.front().first, chunks.back().last, in_flight, {}});
  if (chunks.size() > 1) pipeline.stages.back().chunks = chunks;
  parts.emplace_back();
}

void GivenPlacement::add_part(compose::GivenPart part, const PlacedPart& placed, const cluster::IslandLevel& level,
                              bool spills) {
  part.shape = shape_of(placed, at(level.classes, part.island_class), spills);
  part.member = placed.member;
  pipeline.stages.back().parts.push_back(std::move(part));
  parts.back().push_back(placed);
}

tl::expected<LaunchPlan, compose::Unpriced> given_plan(std::span<const GivenPlacement> pipelines,
                                                       const std::optional<compose::GivenEncoders>& encoders,
                                                       runtime::Target runtime, const cluster::Fleet& fleet,
                                                       const cluster::IslandLevel& level, const model::Model& model,
                                                       const cost::ProfileSet* profiles) {
  std::vector<compose::GivenPipeline> given;
  given.reserve(pipelines.size());
  std::int64_t samples = 0;
  for (const GivenPlacement& pipeline : pipelines) {
    given.push_back(pipeline.pipeline);
    samples += pipeline.samples;
  }
  const auto compositions = encoders ? compose::price_colocated(given, *encoders, samples, model, level, profiles)
                                     : compose::price_together(given, model, level, profiles);
  if (!compositions) return tl::unexpected(compositions.error());
  std::vector<PlacedPipeline> placed;
  placed.reserve(pipelines.size());
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    placed.push_back({&(*compositions)[p], pipelines[p].parts, pipelines[p].samples});
  }
  LaunchPlan plan = assemble(placed, fleet, level, model, profiles);
  plan.runtime = runtime;
  plan.predicted.closed_form = check(plan).closed_form;
  plan.targets = target_verdicts(plan);
  return plan;
}

}  // namespace tangram::plan
