// Values in 8 and 4 bits: what is cast, kept and gathered, by recipe and generation (Transformer Engine's documentation
// of low-precision training).
#include "tangram/cost/narrow.hpp"
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/stage.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;
using model::Fp8Recipe;

namespace {

cluster::GpuType gpu_of(const std::string& architecture) {
  cluster::GpuType gpu = round_gpu();
  gpu.architecture = architecture;
  set_peak(gpu, DType::kFp8, 200_TFLOPs);
  set_peak(gpu, DType::kFp4, 400_TFLOPs);
  return gpu;
}

model::Job job_in(DType precision, Fp8Recipe recipe = Fp8Recipe::kDelayed) {
  model::Job job;
  job.precision = precision;
  job.fp8_recipe = recipe;
  job.dropout = false;
  return job;
}

double kept(const model::BlockType& block, const model::Job& job, std::optional<DType> format = std::nullopt) {
  return block_activation(block, job, {}, 1, format).none;
}

/// Of one block on two GPUs.
StageCost stage_of(const model::Job& job, int zero) {
  model::Model model = model_of(llama_block(1024, 8, 8, 4096, 512), 1, 1000);
  model.job.precision = job.precision;
  model.job.narrow_parameters = job.narrow_parameters;
  model.job.transpose_cache = job.transpose_cache;
  const auto units = unit_costs(model, shape_of(gpu_of("hopper"), 1, 2), data(2), 2);
  REQUIRE(units);
  MemoryPolicy policy;
  policy.zero = zero;
  return stage_cost(*units, inner(1), policy);
}

}  // namespace

TEST_CASE("a layer that computes in 16 bits costs what it does where all do") {
  model::Model model = model_of(llama_block(1024, 8, 8, 4096, 512), 3, 1000);
  const auto unit_of = [&](DType precision, const model::WideLayers& wide, std::size_t type) {
    model.job.precision = precision;
    model.job.wide_layers = wide;
    set_wide_layers(model);
    const auto units = unit_costs(model, shape_of(gpu_of("hopper"), 1, 2), data(2), 2);
    REQUIRE(units);
    REQUIRE(units->blocks.size() == model.types.size());
    return units->blocks[type];
  };
  const UnitCost all = unit_of(DType::kBf16, {}, 0);
  const UnitCost wide = unit_of(DType::kFp8, {1, 1}, 0);
  const UnitCost narrow = unit_of(DType::kFp8, {1, 1}, 1);
  CHECK(wide.forward == all.forward);
  CHECK(wide.backward == all.backward);
  CHECK(wide.copies == 0);
  CHECK(wide.gathered_bytes == all.gathered_bytes);
  CHECK(narrow.copies > 0);
  const UnitCost plain = unit_of(DType::kFp8, {}, 0);
  CHECK(narrow.forward == plain.forward);
  CHECK(narrow.copies == plain.copies);
}

TEST_CASE("a copy has its values and their scales") {
  CHECK(narrow_bytes(DType::kBf16, Fp8Recipe::kMxfp8) == 2);
  CHECK(narrow_bytes(DType::kFp8, Fp8Recipe::kDelayed) == 1);
  CHECK(narrow_bytes(DType::kFp8, Fp8Recipe::kTensorwise) == 1);
  CHECK(narrow_bytes(DType::kFp8, Fp8Recipe::kBlockwise) == 1.03125);
  CHECK(narrow_bytes(DType::kFp8, Fp8Recipe::kMxfp8) == 1.03125);
  CHECK(narrow_bytes(DType::kFp4, Fp8Recipe::kDelayed) == 0.5625);
}

TEST_CASE("Blackwell reads fp8 of one scale a tensor either way, other formats need two copies") {
  const auto count = [](const char* architecture, DType format, Fp8Recipe recipe) {
    return narrow_copies(gpu_of(architecture), format, job_in(format, recipe)).count;
  };
  CHECK(count("hopper", DType::kFp8, Fp8Recipe::kTensorwise) == 2);
  CHECK(count("blackwell", DType::kFp8, Fp8Recipe::kTensorwise) == 1);
  CHECK(count("blackwell", DType::kFp8, Fp8Recipe::kMxfp8) == 2);
  CHECK(count("blackwell", DType::kFp4, Fp8Recipe::kDelayed) == 2);
  CHECK(narrow_copies(gpu_of("blackwell"), DType::kBf16, job_in(DType::kBf16)).bytes() == 0);
}

TEST_CASE("what is cast is read once, and once more for the greatest value of a tensor, unless a norm does it") {
  const auto reads = [](DType format, Fp8Recipe recipe) {
    const NarrowCopies copies = narrow_copies(gpu_of("hopper"), format, job_in(format, recipe));
    return std::vector<double>{copies.normed_reads, copies.input_reads, copies.gradient_reads};
  };
  using List = std::vector<double>;
  CHECK(reads(DType::kFp8, Fp8Recipe::kDelayed) == List{0, 1, 1});
  CHECK(reads(DType::kFp8, Fp8Recipe::kTensorwise) == List{1, 2, 2});
  CHECK(reads(DType::kFp8, Fp8Recipe::kBlockwise) == List{1, 1, 1});
  CHECK(reads(DType::kFp8, Fp8Recipe::kMxfp8) == List{1, 1, 1});
  CHECK(reads(DType::kFp4, Fp8Recipe::kDelayed) == List{2, 2, 2});
}

// Inputs of linear layers alone: both norms' outputs (hidden each) and the activation's (ffn columns); attention's
// output is kept by attention, and under delayed scaling once more.
TEST_CASE("linear layers keep their inputs as weight gradients read them") {
  const model::BlockType block = llama_block(1024, 8, 4, 4096, 512);
  const auto tokens = static_cast<double>(block.tokens);
  const double read = 2.0 * static_cast<double>(block.hidden) + static_cast<double>(block.feed_forward.hidden);
  const double attended = static_cast<double>(block.attention.heads) * block.attention.head_dim;
  const double wide = kept(block, job_in(DType::kBf16));
  CHECK(wide - kept(block, job_in(DType::kFp8, Fp8Recipe::kTensorwise)) == Approx(tokens * read));
  CHECK(wide - kept(block, job_in(DType::kFp8)) == Approx(tokens * (read - attended)));
  CHECK(wide - kept(block, job_in(DType::kFp4)) == Approx(tokens * read * (2 - 0.5625)));
  // On a GPU without the format, and where software keeps two bytes.
  CHECK(kept(block, job_in(DType::kFp8), DType::kBf16) == wide);
  model::Job two_bytes = job_in(DType::kFp8);
  two_bytes.narrow_inputs = false;
  CHECK(kept(block, two_bytes) == wide);
}

TEST_CASE("a router keeps what it reads in two bytes, experts of 16 bits all of theirs") {
  const model::BlockType block = moe_block(1024, 8, 8, 768, 512);
  const auto tokens = static_cast<double>(block.tokens);
  const double rows = tokens * block.feed_forward.experts_per_token;
  const double of_experts = rows * static_cast<double>(block.hidden + block.feed_forward.expert_hidden);
  const double of_attention = tokens * static_cast<double>(block.hidden);
  const double wide = kept(block, job_in(DType::kBf16));
  model::Job job = job_in(DType::kFp8, Fp8Recipe::kTensorwise);
  CHECK(wide - kept(block, job) == Approx(of_attention + of_experts));
  job.wide_experts = true;
  CHECK(wide - kept(block, job) == Approx(of_attention));
}

TEST_CASE("weights have copies beside them, or are gathered as copies") {
  const double parameters = local_parameters(llama_block(1024, 8, 8, 4096, 512), data(2)).shared;
  const model::Job wide = job_in(DType::kBf16);
  const model::Job cast = job_in(DType::kFp8);
  model::Job narrow = cast;
  narrow.narrow_parameters = true;
  const double beside = (stage_of(cast, 1).parameters - stage_of(wide, 1).parameters).as_double();
  CHECK(beside == Approx(2 * parameters));
  CHECK(stage_of(narrow, 1).parameters == stage_of(wide, 1).parameters);
  CHECK(stage_of(narrow, 1).optimizer_step < stage_of(cast, 1).optimizer_step);
  // Without a sharded optimizer nothing is gathered; what ZeRO-3 gathers is let go.
  CHECK(stage_of(narrow, 0).parameters == stage_of(cast, 0).parameters);
  CHECK(stage_of(narrow, 3).parameters == stage_of(wide, 3).parameters);
  const double buffered = (stage_of(cast, 3).transient - stage_of(wide, 3).transient).as_double();
  CHECK(buffered > 1.9 * parameters);
}

TEST_CASE("ZeRO-3 gathers parameters in as many bits as they are kept in") {
  const model::Job cast = job_in(DType::kFp8);
  model::Job narrow = cast;
  narrow.narrow_parameters = true;
  const double parameters = local_parameters(llama_block(1024, 8, 8, 4096, 512), data(2)).shared;
  // A byte less a parameter of this block and of the next, which is gathered ahead.
  const double smaller = (stage_of(cast, 3).transient - stage_of(narrow, 3).transient).as_double();
  CHECK(smaller == Approx(2 * parameters));
  CHECK(stage_of(narrow, 3).forward < stage_of(cast, 3).forward);
  CHECK(stage_of(narrow, 3).backward < stage_of(cast, 3).backward);
}

TEST_CASE("without a cache each backward pass transposes weights, which have one copy") {
  const double parameters = local_parameters(llama_block(1024, 8, 8, 4096, 512), data(2)).shared;
  const model::Job cached = job_in(DType::kFp8);
  model::Job transposing = cached;
  transposing.transpose_cache = false;
  const StageCost with = stage_of(cached, 1);
  const StageCost without = stage_of(transposing, 1);
  CHECK((with.parameters - without.parameters).as_double() == Approx(parameters));
  CHECK(without.forward == with.forward);
  // Kept and gathered so, a byte a parameter is all.
  transposing.narrow_parameters = true;
  const double held = (stage_of(job_in(DType::kBf16), 1).parameters - stage_of(transposing, 1).parameters).as_double();
  CHECK(held == Approx(parameters));
  // Read and written, a byte each, at 1e12 bytes/s; norms are not cast.
  const double longer = to_seconds(without.backward - with.backward);
  CHECK(longer == Approx(2 * parameters / 1e12).epsilon(1e-3));
  CHECK(without.optimizer_step < with.optimizer_step);
  // On Blackwell one copy is read either way.
  const auto copies = [&](const model::Job& job) { return narrow_copies(gpu_of("blackwell"), DType::kFp8, job); };
  CHECK_FALSE(copies(transposing).transposes());
  CHECK(copies(transposing).held == copies(cached).held);
}

TEST_CASE("what is kept in 8 bits and not trained is not cast again") {
  model::Model model = model_of(llama_block(1024, 8, 8, 4096, 512), 1, 1000);
  const auto cast_of = [&](bool narrow, bool trained) {
    model.job.precision = DType::kFp8;
    model.job.narrow_parameters = narrow;
    model.types.front().gradients.weights = trained;
    const auto units = unit_costs(model, shape_of(gpu_of("hopper"), 1, 2), data(2), 2);
    REQUIRE(units);
    return units->blocks.front().cast;
  };
  CHECK(cast_of(true, true) > 0);
  CHECK(cast_of(false, true) == cast_of(true, true));
  CHECK(cast_of(false, false) == cast_of(true, true));
  CHECK(cast_of(true, false) == 0);
}

TEST_CASE("gate and up may be kept in 8 bits, which takes kernels of their own") {
  const model::BlockType block = llama_block(1024, 8, 4, 4096, 512);
  model::Job job = job_in(DType::kBf16);
  const double wide = kept(block, job);
  const auto seconds = [&](const model::BlockType& type) {
    return block_time(type, job, {}, 1, shape_of(gpu_of("hopper"), 1, 1)).compute;
  };
  const Passes without = seconds(block);
  job.narrow_gates = true;
  CHECK(wide - kept(block, job) == 2.0 * static_cast<double>(block.tokens * block.feed_forward.hidden));
  CHECK(seconds(block).forward > without.forward);
  CHECK(seconds(block).backward > without.backward);
  // No gate, nothing to keep so.
  model::BlockType plain = block;
  plain.feed_forward.gated = false;
  const double all = kept(plain, job);
  job.narrow_gates = false;
  CHECK(kept(plain, job) == all);
}

TEST_CASE("no parameter is gathered with fewer bytes than the bound takes") {
  model::Job job = job_in(DType::kFp4);
  CHECK(least_parameter_bytes(job) == 2);
  job.narrow_parameters = true;
  CHECK(least_parameter_bytes(job) == 0.5625);
  job.precision = DType::kFp8;
  CHECK(least_parameter_bytes(job) == 1);
  model::set_precision(job, DType::kFp32);
  CHECK(least_parameter_bytes(job) == 2);
}
