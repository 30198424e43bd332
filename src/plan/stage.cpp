#include <algorithm>

#include "tangram/base/at.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

bool Stage::puts_off() const {
  return std::ranges::any_of(parts, [](const Part& p) { return p.predicted.weight_gradient > Nanoseconds(0); });
}

int Stage::block_count() const {
  int count = 0;
  for (const model::BlockRange& chunk : chunks) count += chunk.count();
  return count;
}

int Stage::most_chunk_blocks() const {
  int most = 0;
  for (const model::BlockRange& chunk : chunks) most = std::max(most, chunk.count());
  return most;
}

std::vector<model::SliceSignature> Stage::signatures(const model::Model& model) const {
  std::vector<model::SliceSignature> all;
  for (const model::BlockRange& chunk : chunks) all.push_back(model::signature(model, chunk));
  return all;
}

std::int64_t LaunchPlan::round_samples() const {
  const bool each = colocated && colocated->each_microbatch();
  std::int64_t samples = 0;
  for (const Pipeline& pipeline : pipelines) {
    samples = std::max(samples, each ? pipeline.microbatch : pipeline.samples);
  }
  return samples;
}

EncoderLanes LaunchPlan::lanes_of(const cost::EncoderLayout& layout) const {
  EncoderLanes lanes;
  std::int64_t gpus = 0;
  for (const int id : pipelines.front().stages) {
    for (const Part& part : stage(id).parts) gpus += part.strategy.degrees.gpus();
  }
  lanes.of_pipeline = std::max<std::int64_t>(1, gpus / layout.tp);
  lanes.of_plan = lanes.of_pipeline * std::ssize(pipelines);
  lanes.samples = (round_samples() + lanes.of_pipeline - 1) / lanes.of_pipeline;
  return lanes;
}

std::vector<std::size_t> LaunchPlan::places_of(const Stage& stage) const {
  const std::vector<int>& ids = at(pipelines, stage.pipeline).stages;
  const auto depth = static_cast<std::size_t>(std::ranges::find(ids, stage.id) - ids.begin());
  std::vector<std::size_t> places;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) places.push_back(c * ids.size() + depth);
  return places;
}

std::vector<model::BlockRange> LaunchPlan::blocks_held(const Stage& stage) const {
  if (!colocated) return stage.chunks;
  const int encoders = model::encoder_blocks(model);
  std::vector<model::BlockRange> held{{0, encoders}};
  for (const model::BlockRange& chunk : stage.chunks) held.push_back({encoders + chunk.first, encoders + chunk.last});
  return held;
}

std::vector<int> Stage::blocks() const {
  std::vector<int> blocks;
  for (const model::BlockRange& chunk : chunks) {
    for (int block = chunk.first; block < chunk.last; ++block) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace tangram::plan
