#include "models.hpp"
#include "support/catch.hpp"

using namespace tangram::model;
using namespace tangram::model::test;

TEST_CASE("flops: a dense block by hand") {
  // hidden 8, 2 heads of 4, inner 32 gated, 4 tokens. Weights 256 + 768 = 1024: 2 x 4 x 1024 = 8192 FLOPs.
  // Attention: 2 products x 2 FLOPs x 4x4 pairs x 2 heads x 4 dims = 512, half when causal: 256.
  BlockType block = dense_block(8, 2, 32, 4);
  CHECK(forward_flops(block).value() == 8192 + 256);
  block.attention.causal = false;
  CHECK(forward_flops(block).value() == 8192 + 512);
}

TEST_CASE("flops: norms and biases multiply nothing") {
  BlockType block = dense_block(8, 2, 32, 4);
  block.norm_bias = block.attention.qkv_bias = block.attention.output_bias = block.attention.qk_norm = true;
  block.feed_forward.bias = true;
  block.norms = 4;
  CHECK(forward_flops(block).value() == 8192 + 256);
}

TEST_CASE("flops: a sliding window cuts the attended pairs") {
  // s = 4, w = 2: 4x2 - 2x2/2 = 6 pairs instead of 8; each pair costs 2 x 2 x 2 heads x 4 dims = 32.
  BlockType block = dense_block(8, 2, 32, 4);
  block.attention.sliding_window = 2;
  CHECK(forward_flops(block).value() == 8192 + 6 * 32);
  block.attention.sliding_window = 4;  // the whole sequence: as without
  CHECK(forward_flops(block).value() == 8192 + 8 * 32);
  block.attention.sliding_window = 100;
  CHECK(forward_flops(block).value() == 8192 + 8 * 32);
}

TEST_CASE("flops: only the chosen experts work") {
  // Attention 256, router 8x4 = 32, 2 of 4 experts of 384 = 768: 2 x 4 x 1056 = 8448; causal attention 256.
  BlockType block = moe_block(8, 2, 4, 2, 16, 4);
  CHECK(forward_flops(block).value() == 8448 + 256);
  block.feed_forward.router_bias = true;  // added to the scores, not multiplied
  CHECK(forward_flops(block).value() == 8448 + 256);
  // A shared expert of 3 x 8x8 = 192 behind a gate of 8 works for every token: 2 x 4 x 200 more.
  block.feed_forward.shared_hidden = 8;
  block.feed_forward.shared_gate = true;
  CHECK(forward_flops(block).value() == 8448 + 256 + 1600);
}

TEST_CASE("flops: latent attention has its own query and value widths") {
  // hidden 8, 2 heads; latents 6 and 4, nope 3, rope 1, values 2. Weights: 8x6 + 6x2x4 + 8x(4+1) + 4x2x(3+2) + 2x2x8 =
  // 208; feed-forward 768. Attention, 4 tokens causal: 8 pairs x 2 heads x 2 x (3 + 1 + 2) = 192.
  BlockType block = dense_block(8, 2, 32, 4);
  Attention& a = block.attention;
  a.kind = AttentionKind::kLatent;
  a.q_lora_rank = 6;
  a.kv_lora_rank = 4;
  a.qk_nope_head_dim = 3;
  a.qk_rope_head_dim = 1;
  a.v_head_dim = 2;
  CHECK(forward_flops(block).value() == 2 * 4 * (208 + 768) + 192);
}

TEST_CASE("flops: an iteration is three forward passes of the batch, head included") {
  // Two blocks of 8448, head 2 x 4 x 100 x 8 = 6400, batch 5, tied or not.
  Model model = uniform_model(dense_block(8, 2, 32, 4), 2);
  model.job.global_batch = 5;
  CHECK(model_flops_per_iteration(model).value() == 3 * 5 * (2 * 8448 + 6400));
  model.tied_embeddings = true;
  CHECK(model_flops_per_iteration(model).value() == 3 * 5 * (2 * 8448 + 6400));
  // A table of width 4: projections 2 x 4 x 32 on both sides, logits 2 x 4 x 100 x 4.
  model.embedding_projection = 4;
  CHECK(model_flops_per_iteration(model).value() == 3 * 5 * (2 * 8448 + 256 + 256 + 3200));
}
