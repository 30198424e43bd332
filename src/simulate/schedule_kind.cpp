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

}  // namespace tangram::simulate
