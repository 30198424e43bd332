// Layers of hybrid models: recurrences, layers of one part, experts in a latent width, gated attention.
#include <cctype>
#include <cmath>

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

double in_billions(std::int64_t count) { return static_cast<double>(count) / 1e9; }

/// "M-M*": a letter a layer, as Nemotron-H has them, D for the gated delta rule, lower case with a feed-forward behind.
std::string letters(const Model& model) {
  std::string out;
  for (int i = 0; i < model.block_count(); ++i) {
    const BlockType& block = model.block(i);
    char letter = block.feed_forward.is_moe() ? 'E' : '-';
    if (block.attends()) letter = '*';
    if (block.recurrence) letter = block.recurrence->kind == RecurrenceKind::kMamba2 ? 'M' : 'D';
    const bool both = block.mixes() && block.feeds_forward();
    out += both ? static_cast<char>(std::tolower(letter)) : letter;
  }
  return out;
}

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

// Model cards: 31.6B with 3.6B active, embeddings included (3.2B without the input embedding's 0.35B); 120.6B with
// 12.7B active; arXiv 2504.03624: 8B.
TEST_CASE("hybrid: Nemotron-3-Nano, Nemotron-3-Super and Nemotron-H-8B as published") {
  const Model nano = hf_model("nemotron-3-nano");
  CHECK(letters(nano) == "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME");
  CHECK(std::abs(in_billions(nano.total_parameters()) - 31.6) < 0.05);
  CHECK(std::abs(in_billions(nano.active_parameters()) - 3.6) < 0.05);
  CHECK(std::abs(in_billions(nano.active_parameters() - nano.embedding_parameters()) - 3.2) < 0.05);
  const Model super = hf_model("nemotron-3-super");
  CHECK(super.block_count() == 88);
  CHECK(std::abs(in_billions(super.total_parameters()) - 120.6) < 0.1);
  CHECK(std::abs(in_billions(super.active_parameters()) - 12.7) < 0.1);
  const Model dense = hf_model("nemotron-h-8b");
  CHECK(letters(dense) == "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-");
  CHECK(std::abs(in_billions(dense.total_parameters()) - 8.1) < 0.05);
}

// Model cards: 80B with 3B active, 79B without embeddings; 32B with 9B active.
TEST_CASE("hybrid: Qwen3-Next-80B-A3B and Granite-4.0-H-Small as published") {
  const Model qwen = hf_model("qwen3-next-80b-a3b");
  CHECK(letters(qwen).substr(0, 8) == "ddd*ddd*");
  CHECK(std::abs(in_billions(qwen.total_parameters()) - 80) < 0.5);
  const std::int64_t ends = qwen.embedding_parameters() + qwen.head_parameters();
  CHECK(std::abs(in_billions(qwen.total_parameters() - ends) - 79) < 0.5);
  CHECK(std::abs(in_billions(qwen.active_parameters() - ends) - 3) < 0.5);
  const Model granite = hf_model("granite-4.0-h-small");
  CHECK(letters(granite).substr(0, 10) == "mmmmm*mmmm");
  CHECK(std::abs(in_billions(granite.total_parameters()) - 32) < 0.5);
  CHECK(std::abs(in_billions(granite.active_parameters()) - 9) < 0.5);
}

// arXiv 2405.21060, appendix D: 64 layers of 2560, 80 heads of 64, one group, a state of 128: 2.7B.
TEST_CASE("hybrid: Mamba2-2.7B as published") {
  const Model model = valid(read_hf_config(R"({"model_type": "mamba2", "hidden_size": 2560, "num_hidden_layers": 64,
    "num_heads": 80, "head_dim": 64, "n_groups": 1, "state_size": 128, "vocab_size": 50288,
    "tie_word_embeddings": true})",
                                           "mamba2.json"));
  CHECK(letters(model) == std::string(64, 'M'));
  CHECK(std::abs(in_billions(model.total_parameters()) - 2.7) < 0.05);
}

// Model card of ibm-ai-platform/Bamba-9B-v2: 32 layers, three of which attend, 9.78B parameters.
TEST_CASE("hybrid: Bamba-9B as published") {
  const Model model = valid(read_hf_config(R"({"model_type": "bamba", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "attn_layer_indices": [9, 18, 27], "mamba_n_heads": 128, "mamba_d_head": "auto", "mamba_n_groups": 1,
    "mamba_d_state": 128})",
                                           "bamba.json"));
  CHECK(letters(model) == "mmmmmmmmm*mmmmmmmm*mmmmmmmm*mmmm");
  CHECK(model.block(0).recurrence->head_dim == 64);
  CHECK(std::abs(in_billions(model.total_parameters()) - 9.78) < 0.05);
}
