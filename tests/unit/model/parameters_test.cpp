#include "models.hpp"
#include "support/catch.hpp"

using namespace tangram::model;
using namespace tangram::model::test;

TEST_CASE("parameters: gated feed-forward has three matrices, the other two") {
  // hidden 8, 2 heads of 4, inner 32. Attention 4 matrices 8x8 = 256; norms 2x8 = 16; feed-forward 3 x 8x32 = 768.
  BlockType block = dense_block(8, 2, 32, 4);
  CHECK(parameters(block).attention == 256);
  CHECK(parameters(block).feed_forward == 768);
  CHECK(parameters(block).replicated == 16);
  block.feed_forward.gated = false;
  CHECK(parameters(block).feed_forward == 512);
  CHECK(parameters(block).total() == 256 + 512 + 16);
}

TEST_CASE("parameters: fewer key-value heads shrink two of four attention matrices") {
  // hidden 8, 4 heads of 2. Query and output: 2 x 8x8 = 128. Keys and values: 2 x 8 x (kv_heads x 2).
  BlockType block = dense_block(8, 4, 32, 4);
  block.attention.kv_heads = 2;  // GQA: 2 x 8x4 = 64
  CHECK(parameters(block).attention == 192);
  block.attention.kv_heads = 1;  // MQA: 2 x 8x2 = 32
  CHECK(parameters(block).attention == 160);
}

TEST_CASE("parameters: column biases are sharded, row biases are not") {
  // hidden 8, 2 heads of 4, inner 32, ungated, LayerNorm. qkv bias 3x8 = 24 and inner bias 32 go with their matrices;
  // output bias 8 and second feed-forward bias 8 are on every rank, and so are norms 2 x (8 + 8) = 32.
  BlockType block = dense_block(8, 2, 32, 4);
  block.feed_forward.gated = false;
  block.feed_forward.bias = block.attention.qkv_bias = block.attention.output_bias = block.norm_bias = true;
  CHECK(parameters(block).attention == 256 + 24);
  CHECK(parameters(block).feed_forward == 512 + 32);
  CHECK(parameters(block).replicated == 8 + 8 + 32);
  block.feed_forward.gated = true;  // two column biases
  CHECK(parameters(block).feed_forward == 768 + 64);
}

TEST_CASE("parameters: query-key norms are one head wide each") {
  BlockType block = dense_block(8, 2, 32, 4);
  const auto plain = parameters(block).replicated;
  block.attention.qk_norm = true;
  CHECK(parameters(block).replicated == plain + 2 * 4);
}

TEST_CASE("parameters: experts, router and shared expert") {
  // hidden 8, 4 experts of 3 x 8x16 = 384; router 8x4 = 32; shared expert 3 x 8x8 = 192; its gate 8; correction bias 4.
  BlockType block = moe_block(8, 2, 4, 2, 16, 4);
  CHECK(parameters(block).expert == 4 * 384);
  CHECK(parameters(block).feed_forward == 0);
  CHECK(parameters(block).replicated == 16 + 32);
  block.feed_forward.shared_hidden = 8;
  block.feed_forward.shared_gate = true;
  block.feed_forward.router_bias = true;
  CHECK(parameters(block).feed_forward == 192);
  CHECK(parameters(block).replicated == 16 + 32 + 8 + 4);

  // 3 blocks; of 4 experts 2 are idle for a token.
  const Model model = uniform_model(block, 3);
  CHECK(model.total_parameters() - model.active_parameters() == 3 * 2 * 384);
}

TEST_CASE("parameters: latent attention of DeepSeek-V3 by hand") {
  // arXiv 2412.19437 section 4.2: hidden 7168, 128 heads, latent 1536 and 512, head 128 + 64 rope, values 128.
  // Down-projections 7168x1536 + 7168x(512+64) and norms 1536 + 512: replicated = 15'140'864.
  // Up-projections 1536 x 128x192 + 512 x 128x(128+128) and output 128x128 x 7168: sharded = 171'966'464.
  BlockType block = dense_block(7168, 128, 18432, 4);
  Attention& a = block.attention;
  a.kind = AttentionKind::kLatent;
  a.q_lora_rank = 1536;
  a.kv_lora_rank = 512;
  a.qk_nope_head_dim = 128;
  a.qk_rope_head_dim = 64;
  a.v_head_dim = 128;
  CHECK(parameters(block).attention == 37'748'736 + 16'777'216 + 117'440'512);
  CHECK(parameters(block).replicated == 11'010'048 + 4'128'768 + 2'048 + 2 * 7168);
  a.q_lora_rank = 0;  // queries straight from hidden, as in DeepSeek-V2-Lite
  CHECK(parameters(block).attention == std::int64_t{7168} * 128 * 192 + 16'777'216 + 117'440'512);
}

TEST_CASE("parameters: embedding and head") {
  // vocabulary 100, hidden 8: table 800, final RMSNorm 8, output matrix 800 unless tied.
  Model model = uniform_model(dense_block(8, 2, 32, 4), 2);
  const auto blocks = 2 * parameters(model.types[0]).total();
  CHECK(model.embedding_parameters() == 800);
  CHECK(model.head_parameters() == 808);
  CHECK(model.total_parameters() == blocks + 1608);
  model.tied_embeddings = true;
  CHECK(model.total_parameters() == blocks + 808);
  // 10 positions of width 8; a table of width 4 with projections 4x8 in and 8x4 out; LayerNorm; 5 patch parameters.
  model.learned_positions = 10;
  model.embedding_projection = 4;
  model.final_norm_bias = true;
  model.extra_embedding_parameters = 5;
  CHECK(model.embedding_parameters() == 400 + 80 + 32 + 5);
  CHECK(model.head_parameters() == 16 + 32);
  model.final_norm = false;
  CHECK(model.head_parameters() == 32);
}
