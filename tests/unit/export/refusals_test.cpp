// What formats refuse, and how they say it. The rules of the targets have their own tests beside the plan module.
#include <algorithm>
#include <functional>

#include "formats.hpp"
#include "plans.hpp"
#include "support/catch.hpp"
#include "tangram/export/export.hpp"

using namespace tangram;
using namespace tangram::exporting;

TEST_CASE("a refusal names the rule, the stages and what to do") {
  const auto made = export_plan(example::unequal_stages(), Format::kMegatron);
  REQUIRE_FALSE(made);
  const Diagnostic& first = made.error().front();
  CHECK(first.kind == ErrorKind::kInfeasible);
  CHECK(first.code == "MLM_TP_VARIES");
  CHECK(first.message ==
        "megatron cannot run this plan, which breaks the rule MLM_TP_VARIES: tensor parallelism is one value for all "
        "stages (stages 1, 2)");
  CHECK(
      first.hint ==
      "tangram plan --target megatron finds the best plan that megatron can run; the format generic takes every plan");
}

TEST_CASE("a plan that does not pass its check is exported in no format") {
  plan::LaunchPlan plan = example::equal_stages();
  plan.ranks[3].gpu = plan.ranks[2].gpu;
  for (const FormatName& format : format_names()) {
    const auto made = export_plan(plan, format.format);
    REQUIRE_FALSE(made);
    CHECK(made.error().front().message.starts_with("the plan does not pass its check: "));
    CHECK(made.error().front().hint == "tangram check lists all that does not hold");
  }
}

namespace {

struct Rule {
  std::string code;
  std::function<void(plan::LaunchPlan&)> break_it;
};

cost::Strategy& strategy(plan::LaunchPlan& plan, std::size_t stage) { return plan.stages[stage].parts[0].strategy; }

/// Broken plans do not pass their check either, so that a format's own rules are asked.
template <class Function>
void expect_refusals(const plan::LaunchPlan& good, Function export_to, const std::vector<Rule>& rules) {
  CHECK(export_to(good));
  for (const Rule& rule : rules) {
    plan::LaunchPlan plan = good;
    rule.break_it(plan);
    const auto made = export_to(plan);
    INFO(rule.code);
    REQUIRE_FALSE(made);
    CHECK(std::ranges::any_of(made.error(), [&](const Diagnostic& d) { return d.code == rule.code; }));
    CHECK_FALSE(made.error().front().hint.empty());
  }
}

}  // namespace

TEST_CASE("sailor refuses what its plans cannot say") {
  expect_refusals(
      example::plain_stages(), export_sailor,
      {{"SAILOR_DP_VARIES", [](auto& p) { strategy(p, 1).degrees.dp = 4; }},
       {"SAILOR_SAMPLES_VARY", [](auto& p) { p.stages[1].parts[0].samples = 8; }},
       {"SAILOR_CP", [](auto& p) { strategy(p, 1).degrees.cp = 2; }},
       {"SAILOR_EP", [](auto& p) { strategy(p, 1).degrees.ep = 2; }},
       {"SAILOR_SP", [](auto& p) { strategy(p, 1).degrees.sequence_parallel = true; }},
       {"SAILOR_ZERO", [](auto& p) { strategy(p, 1).policy.zero = 1; }},
       {"SAILOR_RECOMPUTE_VARIES", [](auto& p) { strategy(p, 1).policy.recompute = cost::RecomputeMode::kSelective; }},
       {"SAILOR_LAYERS_VARY", [](auto& p) { strategy(p, 1).policy.runs = {{1, {3}}, {4, {0}}}; }},
       {"SAILOR_TP_DIVIDES", [](auto& p) { strategy(p, 1).degrees.tp = 3; }}});
}

TEST_CASE("flashflex refuses what its plans cannot say") {
  expect_refusals(
      example::llama_pipelines(), export_flashflex,
      {{"FLASHFLEX_MIXED_STAGE", [](auto& p) { p.stages[0].parts.push_back(p.stages[0].parts[0]); }},
       {"FLASHFLEX_DP", [](auto& p) { strategy(p, 1).degrees.dp = 2; }},
       {"FLASHFLEX_CP", [](auto& p) { strategy(p, 1).degrees.cp = 2; }},
       {"FLASHFLEX_EP", [](auto& p) { strategy(p, 1).degrees.ep = 2; }},
       {"FLASHFLEX_ZERO", [](auto& p) { strategy(p, 1).policy.zero = 1; }},
       {"FLASHFLEX_LAYERS_VARY", [](auto& p) { strategy(p, 1).policy.runs = {{1, {3}}, {2, {0}}}; }},
       {"FLASHFLEX_RECOMPUTE", [](auto& p) { strategy(p, 1).policy.recompute = cost::RecomputeMode::kSelective; }},
       {"FLASHFLEX_RECOMPUTE_VARIES",
        [](auto& p) { strategy(p, 1).policy = {0, cost::RecomputeMode::kFull, p.stages[1].block_count()}; }},
       {"FLASHFLEX_MODEL", [](auto& p) { p.model.types[0].feed_forward.gated = false; }},
       {"FLASHFLEX_TOKENS", [](auto& p) { p.model.job.sequence_length = 2048; }}});
}

TEST_CASE("galvatron refuses what its strategies cannot say") {
  expect_refusals(
      example::plain_stages(), export_galvatron,
      {{"GALVATRON_GPU_TYPES",
        [](auto& p) {
          p.islands.push_back(p.islands[0]);
          p.islands[1].device.memory += Bytes(1);
          p.stages[1].parts[0].island = 1;
        }},
       {"GALVATRON_MIXED_STAGE", [](auto& p) { p.stages[0].parts.push_back(p.stages[0].parts[0]); }},
       {"GALVATRON_GPUS_VARY", [](auto& p) { strategy(p, 1).degrees.dp = 4; }},
       {"GALVATRON_ZERO", [](auto& p) { strategy(p, 1).policy.zero = 1; }},
       {"GALVATRON_ZERO_VARIES", [](auto& p) { strategy(p, 1).policy.zero = 2; }},
       {"GALVATRON_ENDS_VARY", [](auto& p) { strategy(p, 1).policy.zero = 3; }},
       {"GALVATRON_RECOMPUTE", [](auto& p) { strategy(p, 1).policy.recompute = cost::RecomputeMode::kSelective; }}});
}

TEST_CASE("galvatron is told of each layer") {
  // Three blocks under plain data parallelism, two of them recomputed; then two of five under ZeRO-3.
  plan::LaunchPlan plan = example::plain_stages();
  strategy(plan, 0).policy = {0, cost::RecomputeMode::kFull, 2};
  strategy(plan, 1).policy.runs = {{1, {3, cost::RecomputeMode::kFull}}, {1, {3}}, {3, {0}}};
  const auto exported = export_galvatron(plan);
  REQUIRE(exported.has_value());
  const std::string& text = exported->files.front().text;
  CHECK(text.find(R"("dp_types_enc": "0,0,0,1,1,0,0,0")") != std::string::npos);
  CHECK(text.find(R"("checkpoint": "1,1,0,1,0,0,0,0")") != std::string::npos);
  CHECK(text.find(R"("default_dp_type": "ddp")") != std::string::npos);
}

TEST_CASE("mimo refuses a model of one module, and encoders in turn with the language model") {
  const auto made = export_plan(example::equal_stages(), Format::kMimo);
  REQUIRE_FALSE(made);
  CHECK(made.error().front().code == "MIMO_NO_ENCODER");
  plan::LaunchPlan plan = example::equal_stages();
  plan.colocated.emplace().language = plan.model;
  const auto colocated = export_mimo(plan);
  REQUIRE_FALSE(colocated);
  CHECK(colocated.error().front().code == "COLOCATED_ENCODERS");
  CHECK(colocated.error().front().message.find("rank_offset ranges must not overlap") != std::string::npos);
}

namespace {

model::Model model_of(const std::string& encoder) {
  auto read = model::read_model(R"({"schema": "tangram.model/1", "name": "tiny",
    "architecture": {"vocabulary": 32, "hidden": 64, "layers": 1, "heads": 4, "ffn_hidden": 96, "encoders": [{
      "name": "vision", "hidden": 32, "layers": 1, "heads": 4, "ffn_hidden": 64, )" +
                                    encoder + R"(}]},
    "training": {"sequence_length": 16, "global_batch_samples": 4}})",
                                "tiny.yaml");
  REQUIRE(read);
  return *read;
}

/// Why torch does not train it; empty: it does.
std::string refusal_of(const std::string& encoder) {
  plan::LaunchPlan plan;
  plan.model = model_of(encoder);
  const auto refusals = torch_refusals(plan);
  return refusals.empty() ? "" : refusals.front().text;
}

}  // namespace

TEST_CASE("torch trains encoders, and names what of them it does not") {
  const std::string mlp = R"("connector": {"widths": [32, 64]})";
  const std::string before = "it does not train all modules of tiny: ";
  CHECK(refusal_of(R"("tokens_in": 8, "tokens_out": 7, "patch_parameters": 320, )" + mlp).empty());
  CHECK(refusal_of(R"("tokens_in": 8, "patch_parameters": 321, )" + mlp) ==
        before + "vision has 321 patch parameters, which are no whole rows of its width 32");
  CHECK(refusal_of(R"("tokens_in": 8, "tokens_out": 7)") ==
        before + "vision has no connector, which its width and its tokens ask for");
  CHECK(refusal_of(R"("tokens_per_sample": 8)") == before + "its encoder has no connector");
  CHECK(refusal_of(R"("tokens_in": 8, "connector": {"kind": "resampler", "widths": [32, 64, 64], "queries": 2})") ==
        before + "the connector of vision is a resampler");
  CHECK(refusal_of(R"("tokens_in": 8, "connector": {"widths": [32, 64], "extra_parameters": 64})") ==
        before + "the connector of vision has parameters in no product");
}
