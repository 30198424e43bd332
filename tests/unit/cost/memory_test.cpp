// Bytes that published formulas and hand counts give.
#include "tangram/cost/memory.hpp"
#include "support/catch.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

// Korthikanti et al., arXiv 2205.05198, table 2, 22B model: s 2048, b 4, h 6144, a 64; 5 a s / h = 106.67.
constexpr double kSbh = 2048.0 * 4 * 6144;
constexpr double kScores = 5.0 * 64 * 2048 / 6144;

ActivationBytes korthikanti(const Degrees& degrees) {
  const model::Model model = megatron_22b();
  return block_activation(model.types.front(), model.job, degrees, 4);
}

}  // namespace

TEST_CASE("Korthikanti table 2: activations of one layer") {
  CHECK(korthikanti(tensor(1, false)).none == Approx(kSbh * (34 + kScores)));                 // equation 1
  CHECK(korthikanti(tensor(8, false)).none == Approx(kSbh * (10 + 24.0 / 8 + kScores / 8)));  // equation 2
  CHECK(korthikanti(tensor(8, true)).none == Approx(kSbh / 8 * (34 + kScores)));              // equation 4
  CHECK(korthikanti(tensor(8, false)).selective == Approx(kSbh * (10 + 24.0 / 8)));
  CHECK(korthikanti(tensor(8, true)).selective == Approx(kSbh * 34 / 8));  // equation 6
  CHECK(korthikanti(tensor(8, false)).full == Approx(2 * kSbh));
  CHECK(korthikanti(tensor(8, true)).full == Approx(2 * kSbh / 8));
}

TEST_CASE("fused attention keeps no scores but the log-sum-exp") {
  model::Model model = megatron_22b();
  model.job.flash_attention = true;
  const ActivationBytes bytes = block_activation(model.types.front(), model.job, tensor(8, true), 4);
  // 4 bytes for each of 4 * 2048 tokens and 8 local heads.
  CHECK(bytes.none == Approx(kSbh * 34 / 8 + 4.0 * 4 * 2048 * 8));
  // Norm outputs dropped: two linear inputs of 2 s b h / t.
  CHECK(bytes.selective == Approx(bytes.none - kSbh * 4 / 8));
}

TEST_CASE("grouped queries and gated feed-forward, by hand") {
  // Llama-3-8B: h 4096, 32 heads of 128, 8 kv heads, f 14336, s 8192, b 1, tp 2 with sequence parallelism, cp 2.
  // u = 4096 tokens on this GPU, r = 2048 rows. Bytes a token or row:
  //   norm inputs and linear inputs   r: 4 * 2 * 4096            = 32768
  //   Q 16 heads, K and V 4 heads     u: 2 * 128 * (16 + 4 + 4)  =  6144
  //   attention output                u: 2 * 128 * 16            =  4096
  //   log-sum-exp                     u: 4 * 16                  =    64
  //   gate, up, product               u: 3 * 2 * 7168            = 43008
  model::Model model = model_of(llama_block(4096, 32, 8, 14336, 8192), 32, 128'256);
  Degrees degrees = tensor(2, true);
  degrees.cp = 2;
  const ActivationBytes bytes = block_activation(model.types.front(), model.job, degrees, 1);
  CHECK(bytes.none == Approx(2048.0 * 32768 + 4096.0 * (6144 + 4096 + 64 + 43008)));
  CHECK(bytes.full == Approx(2048.0 * 2 * 4096));
}

// A norm 4 bytes of its input and 2 of what it scales it to, not 2 of its input; a gate what it gives.
TEST_CASE("a framework's operators keep what each reads") {
  model::Model model = model_of(llama_block(4096, 32, 8, 14336, 8192), 32, 128'256);
  const auto kept = [&] { return block_activation(model.types.front(), model.job, {}, 1).none / 8192; };
  const double fused = kept();
  model.job.eager_operators = model::kAllEager;
  CHECK(kept() - fused == Approx(2 * 4 * 4096 + 2 * 14336));
  model.job.eager_operators = {model::EagerOperator::kNorms};
  CHECK(kept() - fused == Approx(2 * 4 * 4096));
  model.job.eager_operators = {model::EagerOperator::kRotary, model::EagerOperator::kGates};
  CHECK(kept() - fused == Approx(2 * 14336));
  model.types.front().gradients.weights = false;
  model.job.eager_operators = {};
  const double frozen = kept();
  model.job.eager_operators = model::kAllEager;
  CHECK(kept() - frozen == Approx(2 * 2 * 4096 + 2 * 14336));  // no gradient reads what a norm scales
}

TEST_CASE("experts keep what they received, computed and got back") {
  // h 1024, 8 heads, 8 experts of 2048, top 2, s 1024, b 1; ep 4, tp 1: u = r = 1024, sent 2048 rows, received
  // 2048 * imbalance. Attention: 1024 * (4 * 2 * 1024 + 2 * 3 * 1024 + 2 * 1024 + 4 * 8); experts: rows in and results
  // back 2 * 1024 bytes each, gate, up and product 3 * 2 * 2048 each row, router 1024 * 8 * 4.
  model::Model model = model_of(moe_block(1024, 8, 8, 2048, 1024), 4, 32'000);
  Degrees degrees = data(4);
  degrees.ep = 4;
  const ActivationBytes bytes = block_activation(model.types.front(), model.job, degrees, 1);
  const double received = 2048 * model::Job{}.routing_imbalance;
  const double attention = 1024.0 * (8192 + 6144 + 2048 + 32);
  const double experts = 2048 * (received + 2048) + 12288 * received + 1024 * 8 * 4;
  CHECK(bytes.none == Approx(attention + experts));
  // Selective recompute drops the products (2 * 2048 a row) and the two norm outputs.
  CHECK(bytes.selective == Approx(bytes.none - 4096 * received - 1024.0 * 2 * 2 * 1024));
  // All in one group: no rank is busier than another.
  CHECK(block_activation(model.types.front(), model.job, data(4), 1).none < bytes.none);
}

TEST_CASE("selective recompute drops what the job's modules keep") {
  // As above on one GPU: 2048 rows, of which each expert's first product reads and gives 2 * 1024 and 3 * 2 * 2048
  // bytes.
  model::Model model = model_of(moe_block(1024, 8, 8, 2048, 1024), 4, 32'000);
  model.types.front().feed_forward.shared_hidden = 512;
  const auto dropped = [&](model::RecomputeModules modules) {
    model.job.recompute_modules = modules;
    const ActivationBytes bytes = block_activation(model.types.front(), model.job, {}, 1);
    return bytes.none - bytes.selective;
  };
  using enum model::RecomputeModule;
  const double shared = 1024.0 * 3 * 2 * 512;
  const double experts = 2048.0 * (2 * 2 * 1024 + 3 * 2 * 2048) + 1024.0 * 8 * 4;
  CHECK(dropped({kNorms}) == Approx(1024.0 * 2 * 2 * 1024));
  CHECK(dropped({kExpertActivation}) == Approx(2048.0 * 2 * 2048));
  CHECK(dropped({kSharedExperts}) == Approx(shared));
  CHECK(dropped({kExperts}) == Approx(shared + experts));
  CHECK(dropped({kExperts, kExpertActivation, kSharedExperts}) == Approx(shared + experts));
  CHECK(dropped({kCoreAttention}) == Approx(1024.0 * 8 * 4));
  CHECK(dropped({kFeedForward, kLatentUp}) == 0);  // it has neither
  // Weights of the router go in before the second product: what the experts give back is not kept.
  model.job.fused_kernels = true;
  CHECK(dropped({kExperts}) == Approx(shared + experts - 2048.0 * 2 * 1024));
}

TEST_CASE("latent attention keeps its compressed vectors and can recompute the rest") {
  // DeepSeek-V2's attention on a small block: q_lora 1536, kv_lora 512, rope 64, nope 128, v 128, 16 heads, h 2048.
  // A token: norms and inputs 4 * 2 * 2048 = 16384; Q, K 16 * 192 and V 16 * 128: 2 * (2 * 3072 + 2048) = 16384;
  // output 2 * 2048 = 4096; log-sum-exp 64; compressed 2 * (2 * (1536 + 512) + 64) = 8320; feed-forward 3 * 2 * 4096.
  model::Model model = model_of(llama_block(2048, 16, 16, 4096, 512), 4, 32'000);
  model::Attention& attention = model.types.front().attention;
  attention.kind = model::AttentionKind::kLatent;
  attention.q_lora_rank = 1536;
  attention.kv_lora_rank = 512;
  attention.qk_nope_head_dim = 128;
  attention.qk_rope_head_dim = 64;
  attention.v_head_dim = 128;
  const ActivationBytes bytes = block_activation(model.types.front(), model.job, {}, 1);
  CHECK(bytes.none == Approx(512.0 * (16384 + 16384 + 4096 + 64 + 8320 + 24576)));
  CHECK(bytes.selective == Approx(bytes.none - 512.0 * (16384 + 8192)));
}

TEST_CASE("logits are sharded by tp, and the loss decides how often they are there") {
  // 22B: 4 * 2048 tokens, 51200 / 8 columns; gathered rows and their gradient 2 * 2 s b h.
  const model::Model model = megatron_22b();
  CHECK(head_activation(model, tensor(8, true), 4).none == Approx(4 * kSbh / 8));
  const auto bytes_of_logit = [](const model::Model& of) {
    return (head_activation(of, tensor(8, true), 4).working - 4 * kSbh) / (8192.0 * 6400);
  };
  CHECK(bytes_of_logit(model) == Approx(12));  // PyTorch's: twice in 16 bits and twice in 32
  model::Model megatron = model;
  megatron.job.in_place_loss = true;
  CHECK(bytes_of_logit(megatron) == Approx(6));  // once in 16 and once in 32
  megatron.job.fused_loss = model::FusedLoss::kTransformerEngine;
  CHECK(bytes_of_logit(megatron) == Approx(2));  // in place
}

TEST_CASE("the vocabulary is padded to 128 columns a rank") {
  CHECK(padded_vocabulary(50'257, 1) == 50'304);  // GPT-2
  CHECK(padded_vocabulary(50'257, 8) == 51'200);
  CHECK(padded_vocabulary(32'000, 2) == 32'000);
}

TEST_CASE("kv heads are replicated when tp exceeds them") {
  // h 1024, 8 heads of 128, 2 kv heads, no feed-forward, tp 8: a rank holds one query head, one whole kv head (K and
  // V), its slice of the output: 4 * 128 * 1024; and both norms.
  const model::BlockType block = llama_block(1024, 8, 2, 0, 128);
  CHECK(local_parameters(block, tensor(8, true)).shared == Approx(4.0 * 128 * 1024 + 2 * 1024));
}

TEST_CASE("experts shard by ep and expert-tp") {
  // 8 experts of 3 * 1024 * 2048 over ep 4 x etp 2: one eighth of all; attention 4 h^2, router 8 h and norms on every
  // rank.
  Degrees degrees = data(8);
  degrees.ep = 4;
  degrees.etp = 2;
  const LocalParameters local = local_parameters(moe_block(1024, 8, 8, 2048, 1024), degrees);
  CHECK(local.expert == Approx(3.0 * 1024 * 2048));
  CHECK(local.shared == Approx(4.0 * 1024 * 1024 + 8 * 1024 + 2 * 1024));
}

TEST_CASE("the clamped copy of gate and up is kept, unless what is between the products is recomputed") {
  using enum model::RecomputeModule;
  const model::BlockType experts = moe_block(1024, 8, 8, 1024, 512);
  const auto bytes_of = [&](bool bias, const model::RecomputeModules& again) {
    model::BlockType block = experts;
    block.feed_forward.bias = bias;
    model::Job job;
    job.recompute_modules = again;
    return block_activation(block, job, {}, 1);
  };
  // Of 512 tokens, two experts each.
  const double copy = 1024.0 * 2 * static_cast<double>(experts.feed_forward.expert_hidden) * 2;
  CHECK(bytes_of(true, {kNorms}).none - bytes_of(false, {kNorms}).none == Approx(copy));
  CHECK(bytes_of(true, {kNorms}).selective - bytes_of(false, {kNorms}).selective == Approx(copy));
  CHECK(bytes_of(true, {kExpertActivation}).selective == Approx(bytes_of(false, {kExpertActivation}).selective));
  // Graphs of whole steps have one operator there.
  const auto in_graph = [&](bool bias) {
    model::BlockType block = experts;
    block.feed_forward.bias = bias;
    model::Job job;
    job.fused_kernels = true;
    job.cuda_graphs = model::kGraphOfStep;
    return block_activation(block, job, {}, 1).none;
  };
  CHECK(in_graph(true) == Approx(in_graph(false)));
}
