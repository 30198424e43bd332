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

std::vector<std::size_t> LaunchPlan::places_of(const Stage& stage) const {
  const std::vector<int>& ids = at(pipelines, stage.pipeline).stages;
  const auto depth = static_cast<std::size_t>(std::ranges::find(ids, stage.id) - ids.begin());
  std::vector<std::size_t> places;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) places.push_back(c * ids.size() + depth);
  return places;
}

std::vector<int> Stage::blocks() const {
  std::vector<int> blocks;
  for (const model::BlockRange& chunk : chunks) {
    for (int block = chunk.first; block < chunk.last; ++block) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace tangram::plan
