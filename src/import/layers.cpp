#include "layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tangram::importing {

namespace {

constexpr const char* kEndsHint = "layers count the embedding as the first and the head as the last";
constexpr const char* kModelHint = "give the --model that the job trains";

/// Embedding and head go with the first and the last block of a launch plan, whoever has them in the file: a file
/// where nobody has them says less than the plan would.
Diagnostics drop_ends(JobPipeline& pipeline, int blocks) {
  Diagnostics wrong;
  const JobStage& first = pipeline.stages.front();
  const JobStage& last = pipeline.stages.back();
  if (first.first != 0) {
    wrong.push_back(at(first.place, "no-embedding",
                       fmt::format("the first stage begins with layer {}: no stage has the embedding", first.first),
                       kEndsHint));
  }
  if (last.last == blocks + 1) {
    wrong.push_back(
        at(last.place, "no-head",
           fmt::format("the last stage ends with layer {} of {}: no stage has the head", last.last - 1, blocks + 1),
           kEndsHint));
  }
  for (JobStage& stage : pipeline.stages) {
    stage.first = std::max<std::int64_t>(stage.first - 1, 0);
    // What is beyond the head stays beyond the blocks.
    stage.last = stage.last == blocks + 2 ? blocks : stage.last - 1;
  }
  return wrong;
}

}  // namespace

Diagnostics number_blocks(Job& job, const model::Model& model) {
  Diagnostics wrong;
  const int blocks = model.block_count();
  for (JobPipeline& pipeline : job.pipelines) {
    if (job.counts_ends) wrong = drop_ends(pipeline, blocks);
    for (std::size_t s = 0; s < pipeline.stages.size() && wrong.empty(); ++s) {
      const JobStage& stage = pipeline.stages[s];
      const auto is_empty = [](const JobLayers& chunk) { return chunk.last <= chunk.first; };
      if (stage.last > blocks) {
        wrong.push_back(at(stage.place, "too-many-layers",
                           fmt::format("stage {} ends with layer {}, the model has {}", s, stage.last, blocks),
                           job.counts_ends ? kEndsHint : kModelHint));
      } else if (std::ranges::any_of(stage.all_chunks(), is_empty)) {
        wrong.push_back(at(stage.place, "empty-stage",
                           fmt::format("{}stage {} has no layers", stage.chunks.empty() ? "" : "a chunk of ", s),
                           "embedding and head stay with layers in a launch plan"));
      }
    }
    if (!wrong.empty()) return wrong;
  }
  return wrong;
}

}  // namespace tangram::importing
