// Fleets, models and a parallelizer with round numbers for the tests of the composer.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/model/model.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::compose::fixtures {

using namespace tangram::literals;

/// hidden 8, two heads of 4, plain feed-forward of 16: 4 * 64 + 2 * 128 = 512 parameters, no norms.
inline model::BlockType small_block() {
  model::BlockType block;
  block.name = "small";
  block.hidden = 8;
  block.tokens = 4;
  block.attention.heads = block.attention.kv_heads = 2;
  block.attention.head_dim = 4;
  block.feed_forward.hidden = 16;
  block.feed_forward.gated = false;
  block.norms = 0;
  return block;
}

/// Without a vocabulary: neither embedding nor head have anything to compute.
inline model::Model model_of(int blocks) {
  model::Model model;
  model.name = "fixture";
  model.types = {small_block()};
  model.blocks.assign(static_cast<std::size_t>(blocks), 0);
  model.hidden = 8;
  model.final_norm = false;
  model.job.sequence_length = 4;
  model.job.global_batch = 8;
  return model;
}

/// A GPU on which the block takes at least `nanoseconds` a sample.
inline cluster::GpuType device(const std::string& name, double nanoseconds) {
  cluster::GpuType gpu;
  gpu.name = name;
  gpu.memory = 1_GiB;
  gpu.memory_bandwidth = 1000_GBps;
  gpu.peak.fill(FlopsPerSecond(1));
  const double seconds = cost::least_gpu_seconds(model_of(1), small_block(), gpu);
  gpu.peak.fill(FlopsPerSecond(seconds / (nanoseconds * 1e-9)));
  return gpu;
}

inline cluster::IslandClass class_of(int gpus_per_member, int members_per_island, int islands) {
  cluster::IslandClass c;
  c.alias = "class";
  c.device = device("gpu", 100);
  c.gpus_per_member = gpus_per_member;
  c.members_per_island = members_per_island;
  for (int i = 0; i < islands; ++i) c.islands.push_back(i);
  c.inside_member = {100_GBps, 1_us};
  c.between_members = {20_GBps, 5_us};
  c.between_islands = {10_GBps, 7_us};
  return c;
}

/// All classes reach each other over 5 GB/s and 9 us.
inline cluster::IslandLevel level_of(std::vector<cluster::IslandClass> classes) {
  cluster::IslandLevel level;
  level.name = "node";
  level.classes = std::move(classes);
  for (std::size_t k = 0; k < level.classes.size(); ++k) level.classes[k].id = static_cast<int>(k);
  level.links.assign(level.classes.size() * level.classes.size(), {5_GBps, 9_us});
  return level;
}

/// One GPU at a time with constant times: per block, for the embedding and for the head, by device name, ns. A third
/// of each is forward. Holds any number of microbatches.
class ConstantParallelizer : public parallelizer::Parallelizer {
 public:
  struct Times {
    std::int64_t block = 0;
    std::int64_t embedding = 0;
    std::int64_t head = 0;
  };
  explicit ConstantParallelizer(std::map<std::string, Times> times) : times_(std::move(times)) {}

  [[nodiscard]] const parallelizer::ParallelizerInfo& info() const override { return info_; }
  [[nodiscard]] std::vector<parallelizer::Outcome> solve(std::span<const parallelizer::Query> queries) const override {
    std::vector<parallelizer::Outcome> outcomes(queries.size());
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const parallelizer::Query& query = queries[i];
      const Times& times = times_.at(query.shape.device.name);
      const std::int64_t time =
          query.samples * (query.slice.block_count() * times.block + (query.slice.embedding ? times.embedding : 0) +
                           (query.slice.head ? times.head : 0));
      parallelizer::PartialPlan plan;
      plan.cost.forward = Nanoseconds(time / 3);
      plan.cost.backward = Nanoseconds(time) - plan.cost.forward;
      plan.n_max = 1'000'000;
      outcomes[i].plans.push_back(plan);
    }
    return outcomes;
  }

 private:
  std::map<std::string, Times> times_;
  parallelizer::ParallelizerInfo info_{"constant", "1", true};
};

}  // namespace tangram::compose::fixtures
