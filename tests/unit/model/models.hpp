// Small models for tests, built by hand.
#pragma once

#include "tangram/model/model.hpp"

namespace tangram::model::test {

inline BlockType dense_block(std::int64_t hidden, int heads, std::int64_t ffn_hidden, std::int64_t tokens) {
  BlockType block;
  block.name = "dense";
  block.hidden = hidden;
  block.tokens = tokens;
  block.attention.heads = heads;
  block.attention.kv_heads = heads;
  block.attention.head_dim = static_cast<int>(hidden / heads);
  block.feed_forward.hidden = ffn_hidden;
  return block;
}

inline BlockType moe_block(std::int64_t hidden, int heads, int experts, int active, std::int64_t expert_hidden,
                           std::int64_t tokens) {
  BlockType block = dense_block(hidden, heads, 0, tokens);
  block.name = "moe";
  block.feed_forward.experts = experts;
  block.feed_forward.experts_per_token = active;
  block.feed_forward.expert_hidden = expert_hidden;
  return block;
}

/// `layers` times the same block; vocabulary 100, batch 1, sequence length as in the block.
inline Model uniform_model(const BlockType& block, int layers) {
  Model model;
  model.name = "test";
  model.types = {block};
  model.blocks.assign(static_cast<std::size_t>(layers), 0);
  model.vocabulary = 100;
  model.hidden = block.hidden;
  model.job.sequence_length = block.tokens;
  model.job.global_batch = 1;
  return model;
}

}  // namespace tangram::model::test
