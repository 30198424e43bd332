// Layers of hybrid models: hand-derived times, bytes and rules, and published times of kernels
// (configs/measurements/kernels/recurrences.json).
#include "tangram/cost/recurrence.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/put_off.hpp"
#include "tangram/cost/validity.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

constexpr double kRate = 100e12;  // FLOP/s of round_gpu
constexpr double kMemory = 1e12;  // bytes/s
constexpr double kTokens = 1024;
constexpr double kHidden = 1024;

/// 32 heads of 64 in 8 groups, keys of 128, chunks of 128: inner 2048, convolved 4096, projected 2048 + 4096 + 32.
model::BlockType mamba2_block() {
  model::BlockType block;
  block.name = "mamba2";
  block.hidden = 1024;
  block.tokens = 1024;
  block.norms = 1;
  block.recurrence = model::Recurrence{model::RecurrenceKind::kMamba2, 32, 64, 8, 128, 4, 128, true, false};
  return block;
}

/// 16 value heads of 128, 8 key heads of 128, chunks of 64: inner 2048, convolved 4096, projected 2048 + 4096 + 32.
model::BlockType delta_block() {
  model::BlockType block = mamba2_block();
  block.name = "gated-delta";
  block.recurrence = model::Recurrence{model::RecurrenceKind::kGatedDelta, 16, 128, 8, 128, 4, 64, false, false};
  return block;
}

model::Model hybrid_model(const model::BlockType& block) { return model_of(block, 4, 32'000); }

double kernel(double flops, double bytes) { return std::max(flops / kRate, bytes / kMemory); }

struct Both {
  double forward = 0;
  double backward = 0;
  // Shares of the rates that kernels of chunks reach.
  double share_forward = 0.5, share_backward = 0.47;
  void once(double seconds) { forward += seconds / share_forward, backward += 2 * seconds / share_backward; }
  void again(double seconds) { forward += seconds / share_forward, backward += 3 * seconds / share_backward; }
  void stream(double bytes, double there, double back) {
    forward += there * bytes / kMemory;
    backward += back * bytes / kMemory;
  }
  void linear(double in, double out) {
    const double flops = 2 * kTokens * in * out;
    forward += kernel(flops, 2 * (kTokens * in + in * out + kTokens * out));
    backward += kernel(flops, 2 * (kTokens * in + in * out + kTokens * out));
    backward += kernel(flops, 2 * (kTokens * in + kTokens * out) + 8 * in * out);  // fp32 gradients, read and written
  }
};

LocalRecurrence published_recurrence(const nlohmann::json& row) {
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  LocalRecurrence local;
  const bool mamba = row.at("kind") == "mamba2";
  local.kind = mamba ? model::RecurrenceKind::kMamba2 : model::RecurrenceKind::kGatedDelta;
  local.scanned = number("batch") * number("sequence");
  local.heads = number("heads");
  local.groups = number("groups");
  local.head_dim = number("head_dim");
  local.key_dim = number("key_dim");
  local.chunk = number("chunk");
  return local;
}

DeviceRates fused_rates(const std::string& gpu) {
  model::Job job;
  job.fused_kernels = true;
  for (const cluster::GpuType& type : cluster::catalogue()) {
    if (type.name == gpu) return device_rates(type, job);
  }
  FAIL("no GPU type " << gpu);
  return {};
}

/// Norm, residual addition, the two projections.
Both around() {
  Both time;
  time.stream(2 * kTokens * kHidden, 2 + 3, 3 + 3);
  time.linear(kHidden, 6176);
  time.linear(2048, kHidden);
  return time;
}

}  // namespace

TEST_CASE("recurrence: a Mamba-2 layer on paper") {
  // 8 chunks; keys 2 T 8 128 = 2 MiB, values 2 T 32 64 = 4 MiB; states 8 x 32 x 128 x 64; scores T x 128 x 8.
  const double keys = 2 * kTokens * 1024, values = 2 * kTokens * 2048;
  const double states = 8 * 32 * 128 * 64.0, scores = kTokens * 128 * 8;
  Both time = around();
  time.again(kernel(2 * 8 * 8 * 128.0 * 128 * 128, 2 * keys + 4 * scores));
  time.again(kernel(2 * 8 * 32 * 128.0 * 64 * 128, keys + values + 4 * states));
  time.again(kernel(0, 8 * states));
  time.once(kernel(2 * 8 * 32 * (128.0 * 64 * 128 + 128.0 * 64 * 128), keys + 2 * values + 4 * scores + 4 * states));
  time.stream(4 * kTokens * 32, 2, 3);
  time.stream(2 * kTokens * 4096, 2, 5);
  time.stream(values, 3, 5);
  const model::Model model = hybrid_model(mamba2_block());
  const BlockTime block = block_time(model.types.front(), model.job, {}, 1, shape_of(round_gpu(), 1, 1));
  CHECK(block.compute.forward == Approx(time.forward));
  CHECK(block.compute.backward == Approx(time.backward));
  CHECK(block.communication.forward == 0);
  CHECK(block.selective_compute == Approx(2 * 2 * kTokens * kHidden / kMemory));
}

TEST_CASE("recurrence: a gated delta layer on paper") {
  // 16 chunks of 64; keys of 8 heads, values of 16 heads of 128; keys once a value head are as many values.
  const double keys = 2 * kTokens * 1024, values = 2 * kTokens * 2048;
  const double square = kTokens * 64 * 16, states = 16 * 16 * 128 * 128.0;
  const double each = 2 * 16 * 16;  // FLOPs of a multiply-add of every chunk and head
  Both time = around();
  time.share_forward = 0.53;
  time.share_backward = 0.375;
  time.once(kernel(each * 64 * 64 * 128, keys + 4 * square));
  time.once(kernel(each * 64 * 64 * 64, 6 * square));
  time.again(kernel(each * 2 * 64 * 128 * 64, keys + values + 2 * values + 2 * square));
  time.again(kernel(each * 2 * 64 * 128 * 128, keys + values + 2 * values + 2 * states));
  time.once(kernel(each * (64.0 * 64 * 128 + 64 * 128 * 64 + 64 * 128 * 128), 2 * keys + 2 * values + 2 * states));
  time.stream(4 * kTokens * 16, 2, 3);
  time.stream(2 * kTokens * 4096, 2, 3);
  time.stream(2 * keys, 2, 3);
  time.stream(values, 3, 5);
  const model::Model model = hybrid_model(delta_block());
  const BlockTime block = block_time(model.types.front(), model.job, {}, 1, shape_of(round_gpu(), 1, 1));
  CHECK(block.compute.forward == Approx(time.forward));
  CHECK(block.compute.backward == Approx(time.backward));
}

TEST_CASE("recurrence: published times of kernels on H100 and B200") {
  std::ifstream file(TANGRAM_RECURRENCE_TIMES);
  REQUIRE(file);
  std::map<std::string, std::vector<double>> misses;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const nlohmann::json& row : document.at("rows")) {
    const Passes time = scan_seconds(published_recurrence(row), 2, fused_rates(row.at("gpu")));
    const auto kind = row.at("kind").get<std::string>();
    for (const auto& [pass, seconds] : {std::pair{"forward", time.forward}, {"backward", time.backward}}) {
      const std::string key = std::string(pass) + "_ms";
      if (!row.contains(key)) continue;
      misses[kind + " " + pass].push_back(std::abs(seconds / (row.at(key).get<double>() * 1e-3) - 1));
    }
  }
  REQUIRE(misses.size() == 3);
  for (const auto& [table, errors] : misses) {
    double sum = 0;
    for (const double error : errors) sum += error;
    INFO(table);
    CHECK(sum / static_cast<double>(errors.size()) < 0.12);
  }
}

TEST_CASE("recurrence: tp and cp leave each GPU its share of the work") {
  for (const model::BlockType& block : {mamba2_block(), delta_block()}) {
    const model::Model model = hybrid_model(block);
    const auto seconds = [&](const Degrees& degrees) {
      return recurrence_seconds(local_recurrence(block, degrees, 1), 2, device_rates(round_gpu(), model.job));
    };
    const Passes whole = seconds({});
    for (const Degrees& degrees : {Degrees{.tp = 4}, Degrees{.cp = 4}, Degrees{.tp = 2, .cp = 2}}) {
      CHECK(seconds(degrees).forward == Approx(whole.forward / 4));
      CHECK(seconds(degrees).backward == Approx(whole.backward / 4));
    }
  }
}

TEST_CASE("recurrence: cp exchanges the columns of both projections, and nothing hides it") {
  const model::Model model = hybrid_model(mamba2_block());
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 2);
  const BlockTime time = block_time(model.types.front(), model.job, {.cp = 2}, 1, shape);
  const double bytes = 2 * 512 * (6176.0 + 2048);
  const double seconds =
      collective_seconds(Collective::kAllToAll, bytes, process_groups({.cp = 2}, shape).context, shape);
  CHECK(time.communication.forward == Approx(seconds));
  CHECK(time.communication.backward == Approx(seconds));
  CHECK(time.overlapped.forward == 0);
}

TEST_CASE("recurrence: what is kept for backward") {
  // Norm's input and output 2 x 1024; projected 6176; outputs and normalised outputs 2 x 2048: of each token 2 bytes.
  const model::Model model = hybrid_model(mamba2_block());
  const ActivationBytes mamba = block_activation(mamba2_block(), model.job, {}, 1);
  CHECK(mamba.none == Approx(2 * kTokens * (2 * 1024 + 6176 + 2 * 2048)));
  CHECK(mamba.selective == Approx(mamba.none - 2 * kTokens * 1024));
  CHECK(mamba.full == Approx(2 * kTokens * 1024));
  const ActivationBytes delta = block_activation(delta_block(), model.job, {}, 1);
  CHECK(delta.none == Approx(mamba.none + 2 * kTokens * (4096 + 16 * 64)));
  const ActivationBytes sharded = block_activation(mamba2_block(), model.job, {.tp = 4, .sequence_parallel = true}, 1);
  CHECK(sharded.none == Approx(mamba.none / 4));
  // In: 1024 read, 6176 gave; out: 2048 read, 1024 gave.
  CHECK(put_off_bytes(mamba2_block(), model.job, {}, 1) == Approx(2 * kTokens * (1024 + 6176 + 2048 + 1024)));
}

TEST_CASE("recurrence: tp x cp divides heads and groups") {
  const model::Model model = hybrid_model(mamba2_block());
  CHECK(why_unsupported(model, {.tp = 8}, 1).empty());
  CHECK(why_unsupported(model, {.tp = 4, .cp = 2}, 1).empty());
  CHECK(why_unsupported(model, {.tp = 16}, 1) == "8 groups of a recurrence cannot be divided by tp 16");
  CHECK(why_unsupported(model, {.tp = 8, .cp = 2}, 1) == "8 groups of a recurrence cannot be divided by tp x cp = 16");
  CHECK(why_indivisible(model, {.runs = {{0, 1}}}, {.tp = 64}, 1) ==
        "32 heads of a recurrence cannot be divided by tp 64");
}

TEST_CASE("hybrid layers: one part costs what the layer's other part does not") {
  // A layer of attention and one of its feed-forward cost what the layer of both does.
  const model::BlockType both = llama_block(1024, 8, 8, 4096, 1024);
  model::BlockType attention = both, feed_forward = both;
  attention.feed_forward = {};
  feed_forward.attention = {};
  attention.norms = feed_forward.norms = 1;
  const model::Model model = model_of(both, 1, 32'000);
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 4);
  for (const Degrees& degrees : {Degrees{}, Degrees{.tp = 4}, Degrees{.tp = 4, .sequence_parallel = true}}) {
    const auto time = [&](const model::BlockType& block) { return block_time(block, model.job, degrees, 1, shape); };
    CHECK(time(attention).compute.forward + time(feed_forward).compute.forward == Approx(time(both).compute.forward));
    CHECK(time(attention).communication.backward + time(feed_forward).communication.backward ==
          Approx(time(both).communication.backward));
    const auto kept = [&](const model::BlockType& block) {
      return block_activation(block, model.job, degrees, 1).none;
    };
    CHECK(kept(attention) + kept(feed_forward) == Approx(kept(both)));
    CHECK(put_off_bytes(attention, model.job, degrees, 1) + put_off_bytes(feed_forward, model.job, degrees, 1) ==
          Approx(put_off_bytes(both, model.job, degrees, 1)));
  }
}

TEST_CASE("hybrid layers: a latent width is what travels to experts") {
  model::BlockType block = llama_block(1024, 8, 8, 4096, 1024);
  block.feed_forward = {};
  block.feed_forward.experts = 8;
  block.feed_forward.experts_per_token = 2;
  block.feed_forward.expert_hidden = 512;
  model::BlockType latent = block;
  latent.feed_forward.latent_hidden = 256;
  const model::Model model = model_of(block, 1, 32'000);
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 4);
  const Degrees degrees{.dp = 4, .ep = 4};
  const auto exchanged = [&](const model::BlockType& of) {
    return block_time(of, model.job, degrees, 1, shape).communication.forward;
  };
  const cluster::DeviceShape instant = [&] {
    cluster::DeviceShape without = shape;
    without.intra.latency = 0_ns;
    return without;
  }();
  const auto bandwidth_alone = [&](const model::BlockType& of) {
    constexpr int kCalls = 2;  // there and back
    return block_time(of, model.job, degrees, 1, instant).communication.forward - kCalls * kCollectiveCall;
  };
  CHECK(exchanged(latent) < exchanged(block));
  CHECK(bandwidth_alone(latent) == Approx(bandwidth_alone(block) / 4));
}
