#include "job.hpp"

#include <algorithm>

namespace tangram::execute {

std::size_t JobEncoder::first_trained() const {
  if (trained_patches) return 0;
  return static_cast<std::size_t>(std::ranges::find_if(blocks, &SmallBlock::trained) - blocks.begin());
}

Job one_process(const Job& job) {
  Job whole;
  whole.model = job.model;
  for (SmallBlock& block : whole.model.blocks) {
    if (block.recurrence) block.recurrence->chunk = 0;
  }
  whole.samples = job.samples;
  whole.encoders = job.encoders;
  for (JobEncoder& encoder : whole.encoders) encoder.layout = {};
  JobStage stage;
  stage.chunks = {{0, static_cast<int>(job.model.blocks.size())}};
  stage.embedding = stage.head = true;
  JobPart& part = stage.parts.emplace_back();
  part.blocks.resize(job.model.blocks.size());
  part.lanes = {{0, 1}};
  JobPipeline pipeline;
  pipeline.microbatches = job.samples;
  pipeline.stages.push_back(stage);
  whole.pipelines.push_back(pipeline);
  whole.ranks.emplace_back();
  return whole;
}

int token(const SmallModel& model, std::int64_t sample, int position) {
  // A linear congruence whose steps share no factor with small vocabularies, bent by a square: neighbours differ, and
  // so do samples.
  const std::int64_t x =
      sample * 7919 + std::int64_t{position} * 104'729 + (sample + position) * (sample + position) * 31;
  return static_cast<int>((x ^ (x >> 5)) % model.vocabulary);
}

}  // namespace tangram::execute
