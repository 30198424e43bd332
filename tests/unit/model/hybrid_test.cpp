// Layers of hybrid models: recurrences, layers of one part, experts in a latent width, gated attention.
#include "files.hpp"
#include "models.hpp"
#include "tangram/model/block_record.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

const std::string kMamba2 = "mamba2: {heads: 8, head_dim: 4, groups: 2, state: 16, chunk: 32}";
const std::string kGatedDelta = "gated_delta: {value_heads: 8, value_head_dim: 4, key_heads: 2, key_head_dim: 6}";

Model read_hybrid(const std::string& architecture) {
  const std::string text = "schema: tangram.model/1\nname: test\narchitecture: {vocabulary: 100, hidden: 16, " +
                           architecture + "}\ntraining: {sequence_length: 64, global_batch_samples: 8}\n";
  return valid(read_model(text, "hybrid.yaml"));
}

BlockType only_block(const std::string& keys) { return read_hybrid("layers: 2, " + keys).types.at(0); }

}  // namespace

TEST_CASE("hybrid: parameters of a Mamba-2 layer") {
  // Inner 8 x 4 = 32, keys and queries 2 x 16 = 32 each. In: 16 x (32 gate + 96 convolved + 8 steps) = 2176; out: 32 x
  // 16 = 512. Convolution 96 x (4 + 1) = 480; three scalars a head 24; norm 32. The layer's norm 16.
  const BlockType block = only_block("only: mixer, " + kMamba2);
  CHECK(block.name == "mamba2");
  CHECK(block.norms == 1);
  CHECK_FALSE(block.attends());
  CHECK_FALSE(block.feeds_forward());
  CHECK(parameters(block).attention == 2176 + 512 + 480 + 24 + 32);
  CHECK(parameters(block).feed_forward == 0);
  CHECK(parameters(block).replicated == 16);
  BlockType biased = block;
  biased.recurrence->projection_bias = true;
  CHECK(parameters(biased).attention == parameters(block).attention + 136);
  CHECK(parameters(biased).replicated == 16 + 16);
}

TEST_CASE("hybrid: parameters of a gated delta layer") {
  // Values 32, keys and queries 2 x 6 = 12 each. In: 16 x (32 gate + 56 convolved + 16 scalars) = 1664; out: 512.
  // Convolution 56 x 4 = 224; two scalars a head 16. Replicated: norm of a head 4, norms of the block 2 x 16.
  const BlockType block = only_block(kGatedDelta + ", ffn_hidden: 32");
  CHECK(block.name == "gated-delta-dense");
  CHECK(block.norms == 2);
  CHECK(parameters(block).attention == 1664 + 512 + 224 + 16);
  CHECK(parameters(block).replicated == 4 + 32);
  CHECK(parameters(block).feed_forward == 3 * 16 * 32);
}

TEST_CASE("hybrid: FLOPs of recurrences are products with weights and with states") {
  const BlockType mamba = only_block("only: mixer, " + kMamba2);
  // 64 tokens; two products with 8 states of 16 x 4.
  CHECK(forward_flops(mamba).value() == 64.0 * 2 * (2176 + 512 + 2 * 8 * 16 * 4));
  BlockType biased = mamba;
  biased.recurrence->projection_bias = true;
  CHECK(forward_flops(biased).value() == forward_flops(mamba).value());
  BlockType chunked = mamba;
  chunked.recurrence->chunk = 16;
  CHECK(forward_flops(chunked).value() == forward_flops(mamba).value());

  const BlockType delta = only_block(kGatedDelta + ", only: mixer");
  // Three products with 8 states of 6 x 4.
  CHECK(forward_flops(delta).value() == 64.0 * 2 * (1664 + 512 + 3 * 8 * 6 * 4));
}

TEST_CASE("hybrid: a layer that is a feed-forward alone") {
  const BlockType block = only_block("only: feed_forward, ffn_hidden: 32, gated: false");
  CHECK(block.name == "dense");
  CHECK_FALSE(block.mixes());
  CHECK(parameters(block).total() == 2 * 16 * 32 + 16);
  CHECK(forward_flops(block).value() == 64.0 * 2 * (2 * 16 * 32));
}

TEST_CASE("hybrid: attention alone, with a gate on what it gives") {
  const BlockType plain_attention = only_block("only: mixer, heads: 4, kv_heads: 2");
  CHECK(plain_attention.name == "attention");
  CHECK(parameters(plain_attention).total() == 16 * (16 + 2 * 8) + 16 * 16 + 16);
  const BlockType gated = only_block("only: mixer, heads: 4, kv_heads: 2, output_gate: true");
  CHECK(parameters(gated).total() == parameters(plain_attention).total() + 16 * 16);
  CHECK(forward_flops(gated).value() == forward_flops(plain_attention).value() + 64.0 * 2 * 16 * 16);
}

TEST_CASE("hybrid: experts in a latent width") {
  // 4 experts of 2 x 8 x 24 = 384; router 16 x 4; down and up 2 x 16 x 8; norm 16. A token meets two experts.
  const BlockType block = only_block(
      "only: feed_forward, gated: false, moe: {experts: 4, experts_per_token: 2, expert_hidden: 24, latent_hidden: 8}");
  CHECK(block.name == "moe");
  CHECK(block.expert_input() == 8);
  CHECK(parameters(block).expert == 4 * 384);
  CHECK(parameters(block).replicated == 64 + 256 + 16);
  CHECK(forward_flops(block).value() == 64.0 * 2 * (2 * 384 + 64 + 256));
}

TEST_CASE("hybrid: what is written reads as the same model") {
  const std::string types =
      "types: [{name: M, only: mixer, " + kMamba2 + "}, {name: D, ffn_hidden: 32, " + kGatedDelta +
      "}, {name: A, heads: 4, output_gate: true, only: mixer}, {name: E, only: feed_forward, gated: false, moe: "
      "{experts: 4, experts_per_token: 2, expert_hidden: 24, latent_hidden: 8, shared_hidden: 12}}], "
      "blocks: [{type: M}, {type: E}, {type: M, count: 2}, {type: A}, {type: D}]";
  const Model model = read_hybrid(types);
  const Model again = valid(read_model(write_model(model), "written.yaml"));
  CHECK(again.types == model.types);
  CHECK(again.blocks == model.blocks);
  CHECK(again.digest == model.digest);
}
