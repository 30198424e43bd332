// Models, devices and queries for the tests of the parallelizer, with few and round numbers.
#pragma once

#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer::fixtures {

using namespace tangram::literals;

/// A block of Llama 3 8B (arXiv 2407.21783, table 3): 218 M parameters.
inline model::BlockType dense_block() {
  model::BlockType block;
  block.name = "dense";
  block.hidden = 4096;
  block.tokens = 4096;
  block.attention.heads = 32;
  block.attention.kv_heads = 8;
  block.attention.head_dim = 128;
  block.feed_forward.hidden = 14336;
  return block;
}

/// A block of Mixtral 8x7B (arXiv 2401.04088, table 1): eight experts of 176 M parameters, two per token.
inline model::BlockType moe_block() {
  model::BlockType block = dense_block();
  block.name = "moe";
  block.feed_forward.hidden = 0;
  block.feed_forward.experts = 8;
  block.feed_forward.experts_per_token = 2;
  block.feed_forward.expert_hidden = 14336;
  return block;
}

inline model::Model model_of(std::vector<model::BlockType> types, std::vector<int> blocks) {
  model::Model model;
  model.name = "fixture";
  model.types = std::move(types);
  model.blocks = std::move(blocks);
  model.vocabulary = 32000;
  model.hidden = model.types.front().hidden;
  model.job.sequence_length = model.types.front().tokens;
  model.job.global_batch = 64;
  return model;
}

inline model::Model dense_model(int blocks = 32) {
  return model_of({dense_block()}, std::vector<int>(static_cast<std::size_t>(blocks), 0));
}

inline model::Model moe_model(int blocks = 32) {
  return model_of({moe_block()}, std::vector<int>(static_cast<std::size_t>(blocks), 0));
}

/// The numbers of an A100 SXM (NVIDIA A100 datasheet, 2021), with `memory` of one's own.
inline cluster::GpuType device(Bytes memory = 80_GiB) {
  cluster::GpuType gpu;
  gpu.name = "test-gpu";
  gpu.vendor = "nvidia";
  gpu.architecture = "ampere";
  gpu.memory = memory;
  gpu.reserved = 0_GiB;
  gpu.memory_bandwidth = 2039_GBps;
  gpu.peak.fill(312_TFLOPs);
  gpu.peer_link = {300_GBps, 2_us};
  gpu.pcie = {32_GBps, 3_us};
  return gpu;
}

inline cluster::DeviceShape shape(int nodes, int per_node, Bytes memory = 80_GiB) {
  return {device(memory), nodes, per_node, {300_GBps, 2_us}, {100_GBps, 5_us}};
}

inline Query query(const model::Model& model, const cluster::DeviceShape& shape, int samples,
                   std::int64_t max_in_flight = 1'000'000) {
  return {model::signature(model, 0, model.block_count()), shape, samples, max_in_flight, model.job.allow};
}

}  // namespace tangram::parallelizer::fixtures
