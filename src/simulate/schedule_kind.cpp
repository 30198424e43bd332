#include <fmt/format.h>

#include "tangram/base/assert.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

std::int64_t chunks_of(const SimPipeline& pipeline) {
  TANGRAM_ASSERT(!pipeline.stages.empty() && !pipeline.stages.front().parts.empty());
  if (pipeline.kind != ScheduleKind::kInterleaved) return 1;
  const std::size_t chunks = pipeline.stages.front().parts.front().chunks.size();
  return chunks == 0 ? 1 : static_cast<std::int64_t>(chunks);
}

std::int64_t group_of(const SimPipeline& pipeline) {
  return pipeline.group > 0 ? pipeline.group : static_cast<std::int64_t>(pipeline.stages.size());
}

SimPipeline with_classic_warmups(SimPipeline pipeline) {
  const std::int64_t chunks = chunks_of(pipeline);
  const std::int64_t group = group_of(pipeline);
  std::int64_t before = 0;
  std::int64_t after = static_cast<std::int64_t>(pipeline.stages.size());
  for (SimStage& stage : pipeline.stages) {
    --after;
    stage.warmup = after;
    if (chunks > 1) stage.warmup = 2 * after + (chunks - 1) * group;
    if (pipeline.kind == ScheduleKind::kGPipe) stage.warmup = pipeline.microbatches;
    stage.deferrable = pipeline.kind == ScheduleKind::kZeroBubble ? before : 0;
    ++before;
  }
  return pipeline;
}

std::string interleaving_refusal(std::int64_t microbatches, std::int64_t stages, std::int64_t group) {
  if (group < stages) return fmt::format("groups of {} microbatches are shorter than the {} stages", group, stages);
  if (group > microbatches) {
    return fmt::format("groups of {} microbatches are longer than the {} there are", group, microbatches);
  }
  const std::int64_t rest = microbatches % group;
  if (rest == 0 || rest >= stages) return {};
  return fmt::format("{} microbatches in groups of {} leave a last group of {}, shorter than the {} stages",
                     microbatches, group, rest, stages);
}

}  // namespace tangram::simulate
