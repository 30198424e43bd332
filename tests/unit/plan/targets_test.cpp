// Which runtime takes which plan: each rule with a plan that keeps it and one that breaks it.
#include <functional>

#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

const TargetVerdict& verdict(const std::vector<TargetVerdict>& verdicts, const std::string& target) {
  return *std::ranges::find(verdicts, target, &TargetVerdict::target);
}

std::string codes(const TargetVerdict& found) {
  std::string text;
  for (const auto& reason : found.reasons) text += reason.code + " ";
  return text;
}

/// What every target takes: two equal stages, tp 2 with sequence parallelism, dp 4, ZeRO-1, on whole hosts.
LaunchPlan plain_plan(World& world) {
  const auto alike = strategy(2, 1, 4, 1, 1, 1);
  std::vector<StageSpec> stages{{4, {{0, 8, 4, alike}}}, {8, {{1, 8, 4, alike}}}};
  LaunchPlan plan = make_plan(world, make_composition(world, 1, 4, 8, stages));
  for (auto& stage : plan.stages) stage.warmup = stage.head ? 0 : 1;
  return plan;
}

Part& first_part(LaunchPlan& plan, std::size_t stage) { return plan.stages[stage].parts.front(); }
cost::Degrees& degrees(LaunchPlan& plan, std::size_t stage) { return first_part(plan, stage).strategy.degrees; }
cost::MemoryPolicy& policy(LaunchPlan& plan, std::size_t stage) { return first_part(plan, stage).strategy.policy; }

struct Rule {
  std::string code;
  std::function<void(LaunchPlan&)> break_it;
};

void expect_refusals(const std::string& target, const std::vector<Rule>& rules) {
  World world = make_world();
  const LaunchPlan plain = plain_plan(world);
  CHECK(codes(verdict(target_verdicts(plain), target)).empty());
  CHECK(verdict(target_verdicts(plain), target).ok);
  for (const auto& rule : rules) {
    LaunchPlan plan = plain;
    rule.break_it(plan);
    const auto verdicts = target_verdicts(plan);
    const auto& found = verdict(verdicts, target);
    INFO(rule.code << " among " << codes(found));
    CHECK_FALSE(found.ok);
    CHECK(std::ranges::any_of(found.reasons, [&](const TargetReason& reason) { return reason.code == rule.code; }));
    CHECK(verdict(verdicts, "generic").ok);
  }
}

using cost::RecomputeMode;

}  // namespace

TEST_CASE("a plan for a runtime that refuses it does not pass its check") {
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  const auto refused = [](const LaunchPlan& judged) {
    const CheckReport report = check(judged);
    return std::ranges::any_of(report.violations, [](const Violation& v) { return v.code == "runtime-refuses"; });
  };
  plan.runtime = runtime::Target::kMegatron;
  CHECK_FALSE(refused(plan));
  degrees(plan, 1).dp = 2;
  CHECK(refused(plan));
  plan.runtime = runtime::Target::kGeneric;
  CHECK_FALSE(refused(plan));
}

TEST_CASE("megatron takes equal stages and refuses others with a reason") {
  expect_refusals(
      "megatron",
      {{"MLM_TP_VARIES", [](LaunchPlan& p) { degrees(p, 1).tp = 4; }},
       {"MLM_CP_VARIES", [](LaunchPlan& p) { degrees(p, 1).cp = 2; }},
       {"MLM_DP_VARIES", [](LaunchPlan& p) { degrees(p, 1).dp = 2; }},
       {"MLM_EP_VARIES",
        [](LaunchPlan& p) {
          p.stages[0].chunks.front().last = p.stages[1].chunks.front().first = 5;
          degrees(p, 1).ep = 2;
        }},
       {"MLM_ETP_VARIES",
        [](LaunchPlan& p) {
          p.stages[0].chunks.front().last = p.stages[1].chunks.front().first = 5;
          degrees(p, 1).etp = 2;
        }},
       {"MLM_GPUS_VARY", [](LaunchPlan& p) { degrees(p, 1).dp = 2; }},
       {"MLM_SP_VARIES", [](LaunchPlan& p) { degrees(p, 1).sequence_parallel = false; }},
       {"MLM_EP_NEEDS_SP",
        [](LaunchPlan& p) {
          for (std::size_t s = 0; s < 2; ++s) degrees(p, s) = {2, 1, 4, 2, 1, false};
        }},
       {"MLM_CP_SEQUENCE",
        [](LaunchPlan& p) {
          for (std::size_t s = 0; s < 2; ++s) degrees(p, s).cp = 3;
        }},
       {"MLM_INSTANCES_VARY", [](LaunchPlan& p) { degrees(p, 1).dp_replicate = 2; }},
       {"MLM_INSTANCES_EXPERTS",
        [](LaunchPlan& p) {
          for (std::size_t s = 0; s < 2; ++s) {
            degrees(p, s).ep = 4;
            degrees(p, s).dp_replicate = 4;
          }
        }},
       {"MLM_ZERO_VARIES", [](LaunchPlan& p) { policy(p, 1).zero = 0; }},
       {"MLM_ZERO_LEVEL",
        [](LaunchPlan& p) {
          for (std::size_t s = 0; s < 2; ++s) policy(p, s).zero = 3;
        }},
       {"MLM_RECOMPUTE_VARIES", [](LaunchPlan& p) { policy(p, 1).recompute = RecomputeMode::kSelective; }},
       {"MLM_RECOMPUTE_LAYERS_VARY",
        [](LaunchPlan& p) {
          policy(p, 0) = {1, RecomputeMode::kFull, 2};
          policy(p, 1) = {1, RecomputeMode::kFull, 3};
        }},
       {"MLM_LAYERS_VARY", [](LaunchPlan& p) { policy(p, 1).runs = {{1, {3}}, {1, {1}}}; }},
       {"MLM_WARMUP", [](LaunchPlan& p) { p.stages[0].warmup = 2; }},
       {"MLM_BATCH_UNEVEN", [](LaunchPlan& p) { p.pipelines[0].samples -= 1; }},
       {"MLM_MICROBATCH_DP",
        [](LaunchPlan& p) { p.pipelines[0].microbatch = first_part(p, 0).samples = first_part(p, 1).samples = 6; }},
       {"MLM_MIXED_STAGE", [](LaunchPlan& p) { p.stages[1].parts.push_back(p.stages[1].parts.front()); }}});
}

TEST_CASE("megatron's execution options go with some plans and not with others") {
  const auto exchanging = [](LaunchPlan& plan) {
    for (Stage& stage : plan.stages) stage.parts.front().strategy.degrees.ep = 2;
    plan.model.job.overlap_experts = true;
  };
  expect_refusals(
      "megatron",
      {{"MLM_CUDA_GRAPHS_EXPERTS", [](LaunchPlan& plan) { plan.model.job.cuda_graphs = model::kGraphOfStep; }},
       {"MLM_CUDA_GRAPHS_RECOMPUTE",
        [](LaunchPlan& plan) {
          plan.model.job.cuda_graphs = model::kGraphsOfBlocks;
          policy(plan, 0).recompute = RecomputeMode::kFull;
        }},
       {"MLM_RECOMPUTE_MODULES",
        [](LaunchPlan& plan) {
          plan.model.job.cuda_graphs = model::kGraphsOfBlocks;
          plan.model.job.recompute_modules = {model::RecomputeModule::kExperts};
          for (std::size_t s = 0; s < 2; ++s) policy(plan, s).recompute = RecomputeMode::kSelective;
        }},
       {"MLM_OPTIMIZER_OFFLOAD", [](LaunchPlan& plan) { plan.model.job.optimizer.offload_fraction = 0.5; }},
       {"MLM_OFFLOAD_MODULES",
        [](LaunchPlan& plan) { plan.model.job.offload_modules = {model::OffloadModule::kAttentionOutput}; }},
       {"MLM_CONTEXT_WINDOWS",
        [](LaunchPlan& plan) {
          plan.model.types.front().attention.sliding_window = 4;
          for (std::size_t s = 0; s < 2; ++s) degrees(plan, s).cp = 2;
        }},
       {"MLM_CONTEXT_HEADS",
        [](LaunchPlan& plan) {
          plan.model.job.context_exchange = model::ContextExchange::kAllToAll;
          for (std::size_t s = 0; s < 2; ++s) degrees(plan, s).cp = 64;
        }},
       {"MLM_TRANSPOSE_CACHE",
        [](LaunchPlan& plan) {
          plan.model.job.precision = DType::kFp8;
          plan.model.job.transpose_cache = false;
        }},
       {"MLM_NARROW_GATES", [](LaunchPlan& plan) { plan.model.job.narrow_gates = true; }},
       {"MLM_WIDE_EXPERTS",
        [](LaunchPlan& plan) {
          plan.model.job.precision = DType::kFp8;
          plan.model.job.wide_experts = true;
        }},
       {"MLM_EXPERT_OVERLAP", exchanging},
       {"MLM_EXPERT_OVERLAP_RECOMPUTE",
        [&](LaunchPlan& plan) {
          exchanging(plan);
          for (std::size_t s = 0; s < 2; ++s) policy(plan, s).recompute = RecomputeMode::kFull;
        }},
       {"MLM_EXPERT_OVERLAP_PRECISION", [&](LaunchPlan& plan) {
          exchanging(plan);
          plan.model.job.precision = DType::kTf32;
        }}});
  // Without experts on other GPUs nothing is exchanged.
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  plan.model.job.overlap_experts = true;
  plan.model.job.cuda_graphs = model::kGraphsOfBlocks;
  CHECK(codes(verdict(target_verdicts(plan), "megatron")).empty());
}

TEST_CASE("flagscale and mimo have no execution options") {
  for (const auto& [target, prefix] : {std::pair{"flagscale", "FS"}, {"mimo", "MIMO"}}) {
    World world = make_world();
    LaunchPlan plan = plain_plan(world);
    plan.model.job.cuda_graphs = model::kGraphsOfBlocks;
    plan.model.job.expert_dispatch = model::ExpertDispatch::kDeepEp;
    plan.model.job.overlap_experts = true;
    plan.model.job.overlap_gather = true;
    plan.model.job.gradient_bucket = 1'000'000;
    plan.model.job.precision = DType::kFp8;
    plan.model.job.narrow_parameters = true;
    plan.model.job.transpose_cache = false;
    plan.model.job.narrow_gates = true;
    plan.model.job.wide_experts = true;
    plan.model.job.wide_layers = {1, 0};
    plan.model.job.optimizer.precision_aware = true;
    plan.model.job.offload_modules = {model::OffloadModule::kCoreAttention};
    plan.model.job.packing.mean = 100;
    plan.model.job.optimizer.offload_fraction = 1;
    const std::string found = codes(verdict(target_verdicts(plan), target));
    for (const char* code :
         {"_CUDA_GRAPHS ", "_EXPERT_DISPATCH ", "_EXPERT_OVERLAP ", "_GATHER_OVERLAP ", "_GRADIENT_BUCKET ",
          "_NARROW_PARAMETERS ", "_TRANSPOSE_CACHE ", "_NARROW_GATES ", "_WIDE_EXPERTS ", "_WIDE_LAYERS ",
          "_PRECISION_AWARE ", "_OFFLOAD ", "_PACKING ", "_OPTIMIZER_OFFLOAD "}) {
      INFO(found);
      CHECK(found.find(prefix + std::string(code)) != std::string::npos);
    }
  }
}

TEST_CASE("megatron has layers in 16 bits at the ends, but not with delayed scaling, nor more than a stage has") {
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  plan.model.job.precision = DType::kFp8;
  plan.model.job.fp8_recipe = model::Fp8Recipe::kMxfp8;
  plan.model.job.wide_layers = {1, 1};
  const auto found = [&] { return codes(verdict(target_verdicts(plan), "megatron")); };
  CHECK(found().empty());
  plan.model.job.wide_layers.last = plan.model.block_count();
  CHECK(found() == "MLM_WIDE_LAYERS ");
  plan.model.job.wide_layers = {1, 1};
  plan.model.job.fp8_recipe = model::Fp8Recipe::kDelayed;
  CHECK(found() == "MLM_WIDE_LAYERS_DELAYED ");
}

TEST_CASE("megatron takes replicas that are cut alike, and no others") {
  World world = make_world();
  const auto alike = strategy(2, 1, 4, 1, 1, 1);
  LaunchPlan plan = make_plan(world, make_composition(world, 2, 4, 8, {{8, {{0, 8, 4, alike}}}}));
  CHECK(verdict(target_verdicts(plan), "megatron").ok);
  plan.pipelines[1].microbatches = 4;
  CHECK(codes(verdict(target_verdicts(plan), "megatron")) == "MLM_PIPELINES_DIFFER ");
}

TEST_CASE("megatron recomputes up to n layers of each stage") {
  // n = 3: the first stage of 4 blocks recomputes 3, a stage of 2 blocks both of them.
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  plan.stages[1].chunks.front().first = 6;
  policy(plan, 0) = {1, RecomputeMode::kFull, 3};
  policy(plan, 1) = {1, RecomputeMode::kFull, 2};
  CHECK(verdict(target_verdicts(plan), "megatron").ok);
}

TEST_CASE("flagscale takes different degrees and refuses what its meshes cannot say") {
  expect_refusals(
      "flagscale",
      {{"FS_CP", [](LaunchPlan& p) { degrees(p, 1).cp = 2; }},
       {"FS_SHARDING_GROUP", [](LaunchPlan& p) { degrees(p, 1).dp_replicate = 2; }},
       {"FS_MICROBATCH_DP", [](LaunchPlan& p) { degrees(p, 1).dp = 3; }},
       {"FS_BATCH_UNEVEN", [](LaunchPlan& p) { p.pipelines[0].samples -= 1; }},
       {"FS_SEQ_TP", [](LaunchPlan& p) { degrees(p, 1).tp = 3; }},
       {"FS_SP_REQUIRED", [](LaunchPlan& p) { degrees(p, 1).sequence_parallel = false; }},
       {"FS_EP_MESH", [](LaunchPlan& p) { degrees(p, 1).ep = 2; }},
       {"FS_HOST_MIXED",
        [](LaunchPlan& p) {
          for (auto& rank : p.ranks) rank.host = "a0";
        }},
       {"FS_HOST_ORDER",
        [](LaunchPlan& p) {  // a0 has ranks 0-7 and 14
          p.ranks[14].host = "a0";
        }},
       {"FS_TIED_TP",
        [](LaunchPlan& p) {
          p.model.tied_embeddings = true;
          degrees(p, 1) = {4, 1, 2, 1, 1, true};
        }},
       {"FS_TIED_DP",
        [](LaunchPlan& p) {
          p.model.tied_embeddings = true;
          degrees(p, 1).dp = 3;
        }},
       {"FS_ZERO_VARIES", [](LaunchPlan& p) { policy(p, 1).zero = 0; }},
       {"FS_ZERO_LEVEL", [](LaunchPlan& p) { policy(p, 1).zero = 2; }},
       {"FS_MODEL_NORMS", [](LaunchPlan& p) { p.model.types[0].norms = 4; }},
       {"FS_MODEL_HYBRID", [](LaunchPlan& p) { p.model.types[0].recurrence = model::Recurrence{}; }},
       {"FS_RECOMPUTE_SELECTIVE", [](LaunchPlan& p) { policy(p, 1).recompute = RecomputeMode::kSelective; }},
       {"FS_WARMUP", [](LaunchPlan& p) { p.stages[0].warmup = 2; }},
       {"FS_TOO_MANY_PATHS", [](LaunchPlan& p) {
          for (int i = 0; i < 65; ++i) p.boundaries[0].transfers.push_back(p.boundaries[0].transfers[0]);
        }}});
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  degrees(plan, 1) = {4, 1, 2, 1, 1, true};
  CHECK(verdict(target_verdicts(plan), "flagscale").ok);
}

TEST_CASE("a stage that has nothing to shard its optimizer over agrees with those that shard theirs") {
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  degrees(plan, 1) = {8, 1, 1, 1, 1, true};
  policy(plan, 1).zero = 0;
  CHECK(codes(verdict(target_verdicts(plan), "flagscale")).empty());
}

TEST_CASE("megatron takes models that its arguments describe") {
  const auto attention = [](LaunchPlan& p, std::size_t type) -> model::Attention& {
    return p.model.types[type].attention;
  };
  expect_refusals(
      "megatron",
      {{"MLM_MODEL_ENCODER", [&](LaunchPlan& p) { attention(p, 0).causal = false; }},
       {"MLM_MODEL_ENCODER", [](LaunchPlan& p) { p.model.types[0].tokens = 576; }},
       {"MLM_MODEL_ENCODER", [](LaunchPlan& p) { p.model.extra_embedding_parameters = 1; }},
       {"MLM_MODEL_PROJECTED_EMBEDDING", [](LaunchPlan& p) { p.model.embedding_projection = 128; }},
       {"MLM_MODEL_PARALLEL_ATTENTION", [](LaunchPlan& p) { p.model.types[0].parallel_attention = true; }},
       {"MLM_MODEL_NORMS", [](LaunchPlan& p) { p.model.types[1].norms = 4; }},
       {"MLM_MODEL_HYBRID", [](LaunchPlan& p) { p.model.types[1].recurrence = model::Recurrence{}; }},
       {"MLM_MODEL_HYBRID", [&](LaunchPlan& p) { attention(p, 0) = {}; }},
       {"MLM_MODEL_HYBRID", [&](LaunchPlan& p) { attention(p, 1).output_gate = true; }},
       {"MLM_MODEL_HYBRID", [](LaunchPlan& p) { p.model.types[0].feed_forward = {}; }},
       {"MLM_MODEL_HYBRID", [](LaunchPlan& p) { p.model.types[1].feed_forward.latent_hidden = 64; }},
       {"MLM_MODEL_FINAL_NORM", [](LaunchPlan& p) { p.model.final_norm = false; }},
       {"MLM_MODEL_LAYERS_DIFFER", [&](LaunchPlan& p) { attention(p, 1).kv_heads = 2; }},
       {"MLM_MODEL_LAYERS_DIFFER",
        [&](LaunchPlan& p) {
          attention(p, 0).sliding_window = 128;
          attention(p, 1).sliding_window = 256;
        }},
       {"MLM_MODEL_BIAS", [&](LaunchPlan& p) { attention(p, 0).output_bias = attention(p, 1).output_bias = true; }},
       {"MLM_MODEL_LOSS", [](LaunchPlan& p) { p.model.job.loss_normalization = "sample_mean"; }},
       {"MLM_MODEL_OPTIMIZER", [](LaunchPlan& p) { p.model.job.optimizer.name = "adafactor"; }}});
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  attention(plan, 0).sliding_window = 128;  // one window, in some layers
  for (auto& type : plan.model.types) type.attention.qkv_bias = true;
  CHECK(codes(verdict(target_verdicts(plan), "megatron")).empty());
}

TEST_CASE("mimo takes one layout per module") {
  expect_refusals("mimo",
                  {{"MIMO_TP_VARIES", [](LaunchPlan& p) { degrees(p, 1).tp = 4; }},
                   {"MIMO_DP_VARIES", [](LaunchPlan& p) { degrees(p, 1).dp = 2; }},
                   {"MIMO_EP_VARIES",
                    [](LaunchPlan& p) {
                      p.stages[0].chunks.front().last = p.stages[1].chunks.front().first = 5;
                      degrees(p, 1).ep = 2;
                    }},
                   {"MIMO_ETP_VARIES",
                    [](LaunchPlan& p) {
                      p.stages[0].chunks.front().last = p.stages[1].chunks.front().first = 5;
                      degrees(p, 1).etp = 2;
                    }},
                   {"MIMO_SP_VARIES", [](LaunchPlan& p) { degrees(p, 1).sequence_parallel = false; }},
                   {"MIMO_RECOMPUTE_VARIES", [](LaunchPlan& p) { policy(p, 1).recompute = RecomputeMode::kSelective; }},
                   {"MIMO_RECOMPUTE_LAYERS_VARY",
                    [](LaunchPlan& p) {
                      policy(p, 0) = {1, RecomputeMode::kFull, 2};
                      policy(p, 1) = {1, RecomputeMode::kFull, 3};
                    }},
                   {"MIMO_CP", [](LaunchPlan& p) { degrees(p, 1).cp = 2; }},
                   {"MIMO_TP_POWER", [](LaunchPlan& p) { degrees(p, 1).tp = 6; }},
                   {"MIMO_DP_DIVIDES", [](LaunchPlan& p) { degrees(p, 1).dp = 3; }},
                   {"MIMO_ZERO", [](LaunchPlan& p) { policy(p, 1).zero = 0; }},
                   {"MIMO_SHARDING_GROUP", [](LaunchPlan& p) { degrees(p, 1).dp_replicate = 2; }},
                   {"MIMO_WARMUP", [](LaunchPlan& p) { p.stages[0].warmup = 2; }}});
}

TEST_CASE("mimo has no path behind the language model, nor into its later layers") {
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  plan.model.graph.modules.resize(2);
  plan.model.graph.modules[1].kind = model::ModuleKind::kGenerator;
  CHECK(codes(verdict(target_verdicts(plan), "mimo")).find("MIMO_GENERATOR") != std::string::npos);
  plan.model.graph.modules[0].kind = model::ModuleKind::kEncoder;
  plan.model.graph.modules[1].kind = model::ModuleKind::kLanguage;
  plan.model.graph.edges = {{0, 1, {5}, {0}}};
  CHECK(codes(verdict(target_verdicts(plan), "mimo")).find("MIMO_DEEPSTACK") != std::string::npos);
  CHECK(model_refusals(runtime::Target::kMimo, plan.model).size() == 1);
}

TEST_CASE("mimo recomputes all layers of stages with different numbers of them") {
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  plan.stages[0].chunks.front().last = plan.stages[1].chunks.front().first = 5;
  policy(plan, 0) = {1, RecomputeMode::kFull, 5};
  policy(plan, 1) = {1, RecomputeMode::kFull, 3};
  CHECK(codes(verdict(target_verdicts(plan), "mimo")).empty());
}

TEST_CASE("mimo knows an encoder by its attention in both directions") {
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  plan.model.types[0].attention.causal = false;  // blocks 0..3 are the encoder now, which is stage 0
  degrees(plan, 0) = {1, 1, 4, 1, 1, false};
  CHECK(codes(verdict(target_verdicts(plan), "mimo")).empty());
  SECTION("it is dense") {
    degrees(plan, 0).ep = 2;
    CHECK(codes(verdict(target_verdicts(plan), "mimo")) == "MIMO_ENCODER_EXPERTS ");
  }
  SECTION("a stage belongs to one module") {
    plan.stages[0].chunks.front().last = 5;
    CHECK(codes(verdict(target_verdicts(plan), "mimo")) == "MIMO_MODULE_SPLIT ");
  }
  SECTION("it is one stage") {
    plan.stages[1].chunks.front().first = 2;
    plan.stages[1].chunks.front().last = 4;
    CHECK(codes(verdict(target_verdicts(plan), "mimo")) == "MIMO_ENCODER_PIPELINE ");
  }
}

TEST_CASE("mimo: each of two encoders is a stage of its own") {
  World world = make_world();
  LaunchPlan plan = plain_plan(world);
  plan.model.types[0].attention.causal = false;  // blocks 0..3 are two encoders, both in stage 0
  plan.model.graph.modules.resize(3);
  const model::BlockRange ranges[] = {{0, 2}, {2, 4}, {4, plan.model.block_count()}};
  for (std::size_t m = 0; m < 3; ++m) plan.model.graph.modules[m].blocks = ranges[m];
  plan.model.graph.modules[0].kind = plan.model.graph.modules[1].kind = model::ModuleKind::kEncoder;
  degrees(plan, 0) = {1, 1, 4, 1, 1, false};
  CHECK(codes(verdict(target_verdicts(plan), "mimo")) == "MIMO_MODULE_SPLIT ");
  plan.stages[0].chunks.front().last = 2;
  plan.stages[1].chunks.front() = {2, 4};
  CHECK(codes(verdict(target_verdicts(plan), "mimo")).empty());
}

TEST_CASE("the example's mixed plan is for the generic target alone") {
  World world = make_world();
  const auto verdicts = target_verdicts(good_plan(world));
  CHECK(verdict(verdicts, "generic").ok);
  for (const std::string target : {"megatron", "flagscale", "mimo"}) CHECK_FALSE(verdict(verdicts, target).ok);
}

TEST_CASE("a target runs a job with the loss that it has") {
  const model::Job plain;
  CHECK(as_run_by(runtime::Target::kGeneric, plain) == plain);
  model::Job in_place;
  in_place.in_place_loss = true;
  for (const auto target : {runtime::Target::kMegatron, runtime::Target::kFlagscale, runtime::Target::kMimo}) {
    CHECK(as_run_by(target, plain) == in_place);
  }
  CHECK(as_run_by(runtime::Target::kGeneric, in_place) == in_place);
}
