// Devices, shapes and models that the cost tests calculate with by hand.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::cost::samples {

using namespace tangram::literals;

/// A file of configs/models.
inline model::Model shipped_model(const std::string& name, const model::JobOverrides& overrides) {
  const std::string path = std::string(TANGRAM_SOURCE_DIR) + "/configs/models/" + name;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  auto model = model::read_model(text.str(), path, overrides);
  REQUIRE(model);
  return *std::move(model);
}

inline void set_peak(cluster::GpuType& gpu, DType type, FlopsPerSecond peak) {
  gpu.peak[static_cast<std::size_t>(type)] = peak;
}

/// NVIDIA A100-80GB-SXM: 312 TFLOP/s dense in 16 bits, 2039 GB/s, NVLink 300 GB/s per direction (datasheet), calibrated
/// as in configs/gpus.
inline cluster::GpuType a100() {
  cluster::GpuType gpu;
  gpu.name = "A100-80GB-SXM";
  gpu.memory = 80_GiB;
  gpu.reserved = 4_GiB;
  gpu.memory_bandwidth = 2039_GBps;
  set_peak(gpu, DType::kFp32, 19.5_TFLOPs);
  set_peak(gpu, DType::kTf32, 156_TFLOPs);
  set_peak(gpu, DType::kFp16, 312_TFLOPs);
  set_peak(gpu, DType::kBf16, 312_TFLOPs);
  gpu.multiprocessors = 108;
  gpu.compute.gemm_efficiency = 0.79;
  gpu.compute.attention_forward = 0.50;
  gpu.compute.attention_backward = 0.26;
  gpu.compute.memory_efficiency = 0.72;
  gpu.compute.kernel_launch = 1_us;
  gpu.compute.host_issue = 70_us;
  return gpu;
}

/// Round numbers, no gaps, no waves and an endlessly fast host, so that every time can be worked out on paper:
/// 100 TFLOP/s, 1000 GB/s.
inline cluster::GpuType round_gpu() {
  cluster::GpuType gpu;
  gpu.name = "round";
  gpu.memory = 100_GiB;
  gpu.memory_bandwidth = 1000_GBps;
  set_peak(gpu, DType::kFp16, 100_TFLOPs);
  set_peak(gpu, DType::kBf16, 100_TFLOPs);
  gpu.compute.gemm_efficiency = 1;
  gpu.compute.memory_efficiency = 1;
  gpu.compute.kernel_launch = 0_ns;
  gpu.compute.host_issue = 0_ns;
  gpu.compute.attention_forward = 0.8;
  gpu.compute.attention_backward = 0.7;
  return gpu;
}

inline cluster::DeviceShape shape_of(const cluster::GpuType& device, int nodes, int per_node) {
  cluster::DeviceShape shape;
  shape.device = device;
  shape.nodes = nodes;
  shape.per_node = per_node;
  shape.intra = {300_GBps, 3_us};
  shape.inter = {100_GBps, 8_us};
  return shape;
}

/// A GPT block: multi-head attention, two-matrix feed-forward of 4h, LayerNorm, biases everywhere.
inline model::BlockType gpt_block(std::int64_t hidden, int heads, std::int64_t tokens) {
  model::BlockType block;
  block.name = "dense";
  block.hidden = hidden;
  block.tokens = tokens;
  block.attention.heads = heads;
  block.attention.kv_heads = heads;
  block.attention.head_dim = static_cast<int>(hidden / heads);
  block.attention.qkv_bias = true;
  block.attention.output_bias = true;
  block.feed_forward.hidden = 4 * hidden;
  block.feed_forward.gated = false;
  block.feed_forward.bias = true;
  block.norm_bias = true;
  return block;
}

/// Llama: RMSNorm, gated feed-forward, no biases.
inline model::BlockType llama_block(std::int64_t hidden, int heads, int kv_heads, std::int64_t ffn,
                                    std::int64_t tokens) {
  model::BlockType block;
  block.name = "dense";
  block.hidden = hidden;
  block.tokens = tokens;
  block.attention.heads = heads;
  block.attention.kv_heads = kv_heads;
  block.attention.head_dim = static_cast<int>(hidden / heads);
  block.feed_forward.hidden = ffn;
  return block;
}

/// Mixtral-like: `experts` gated experts of `width`, two per token.
inline model::BlockType moe_block(std::int64_t hidden, int heads, int experts, std::int64_t width,
                                  std::int64_t tokens) {
  model::BlockType block = llama_block(hidden, heads, heads, 0, tokens);
  block.name = "moe";
  block.feed_forward.experts = experts;
  block.feed_forward.experts_per_token = 2;
  block.feed_forward.expert_hidden = width;
  return block;
}

inline model::Model model_of(const model::BlockType& block, int layers, std::int64_t vocabulary) {
  model::Model model;
  model.types = {block};
  model.blocks.assign(static_cast<std::size_t>(layers), 0);
  model.vocabulary = vocabulary;
  model.hidden = block.hidden;
  model.job.sequence_length = block.tokens;
  model.job.global_batch = 64;
  return model;
}

/// Megatron's 22B of Korthikanti et al., table 3: 48 layers, hidden 6144, 64 heads, sequence 2048, vocabulary 51200.
inline model::Model megatron_22b() {
  model::Model model = model_of(gpt_block(6144, 64, 2048), 48, 51'200);
  model.learned_positions = 2048;
  model.tied_embeddings = true;
  model.final_norm_bias = true;
  model.job.precision = DType::kFp16;
  model.job.flash_attention = false;
  return model;
}

inline model::SliceSignature whole(const model::Model& model) {
  model::SliceSignature slice;
  slice.runs = {{0, model.block_count()}};
  slice.embedding = true;
  slice.head = true;
  return slice;
}

inline model::SliceSignature inner(int blocks) {
  model::SliceSignature slice;
  slice.runs = {{0, blocks}};
  return slice;
}

inline Degrees tensor(int tp, bool sequence_parallel) {
  Degrees degrees;
  degrees.tp = tp;
  degrees.sequence_parallel = sequence_parallel;
  return degrees;
}

inline Degrees data(int dp) {
  Degrees degrees;
  degrees.dp = dp;
  return degrees;
}

}  // namespace tangram::cost::samples
