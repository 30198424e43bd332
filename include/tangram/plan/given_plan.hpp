// Pipelines that somebody else chose, as a launch plan: an older plan on today's fleet, or an imported job. Goes in:
// stages with their strategies, and the GPUs of each. Comes out: the plan, with times and memory as the planner's own
// plans have them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tangram/compose/given.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::plan {

/// A pipeline on named GPUs.
struct GivenPlacement {
  compose::GivenPipeline pipeline;
  std::vector<std::vector<PlacedPart>> parts = {};  ///< [stage][part]
  std::int64_t samples = 0;                         ///< as in PlacedPipeline

  /// `chunks`: where its blocks are, ascending; one where they are in a row.
  void add_stage(const std::vector<model::BlockRange>& chunks, std::int64_t in_flight);
  /// To the last stage. Shape and member of `part` follow from where it is placed; `spills`: over several islands.
  void add_part(compose::GivenPart part, const PlacedPart& placed, const cluster::IslandLevel& level, bool spills);
};

/// Priced together and assembled, with the closed form that its stages give where the runtime runs them, and the
/// verdicts of all runtimes. Why GPUs are idle is left open. With `encoders` the pipelines are alike and hold the
/// language model alone.
[[nodiscard]] tl::expected<LaunchPlan, compose::Unpriced> given_plan(
    std::span<const GivenPlacement> pipelines, const std::optional<compose::GivenEncoders>& encoders,
    runtime::Target runtime, const cluster::Fleet& fleet, const cluster::IslandLevel& level, const model::Model& model,
    const cost::ProfileSet* profiles);

}  // namespace tangram::plan
