// Whole verifications: every technique alone, boundaries of every kind, and every planted mistake found by its name.
#include "tangram/execute/verify.hpp"

#include <algorithm>

#include "pass_order.hpp"
#include "unit/execute/tiny_plan.hpp"
#include "unit/execute/verified.hpp"

using namespace tangram;
using namespace tangram::execute;
using namespace tangram::execute::tiny;
using cost::RecomputeMode;

namespace {

/// One stage of `gpus` ranks, 2 microbatches of 4 samples.
plan::LaunchPlan one_stage(const std::string& types, cost::Degrees degrees, cost::MemoryPolicy policy = {}) {
  return make_plan(make_model(types), {{4, 2, {{static_cast<int>(types.size()), {{degrees, 4, policy}}}}}});
}

/// tp2+sp dp2 | dp4 ep2 zero1 | a mixed stage of tp2 and single ranks; microbatches of 4.
plan::LaunchPlan three_stages() {
  return make_plan(make_model("ddmmdd"), {{4,
                                           5,
                                           {{2, {{{2, 1, 2, 1, 1, true}, 4}}},
                                            {4, {{{1, 1, 4, 2, 1, false}, 4, {1, RecomputeMode::kNone, 0}}}},
                                            {6, {{{2, 1, 1, 1, 1, false}, 1}, {{1, 1, 3, 1, 1, false}, 3}}}}}});
}

plan::LaunchPlan zero_bubble(plan::LaunchPlan plan, std::int64_t put_off) {
  plan.zero_bubble = true;
  for (plan::Stage& stage : plan.stages) {
    stage.put_off = put_off;
    for (plan::Part& part : stage.parts) part.predicted.weight_gradient = Nanoseconds(1);
  }
  return plan;
}

}  // namespace

TEST_CASE("every degree alone computes what one process computes") {
  check_good(one_stage("dd", {1, 1, 1, 1, 1, false}));
  check_good(one_stage("dd", {2, 1, 1, 1, 1, false}));
  check_good(one_stage("dd", {4, 1, 1, 1, 1, true}));
  check_good(one_stage("gg", {8, 1, 1, 1, 1, true}));  // four tp ranks share each key-value head
  check_good(one_stage("gg", {4, 1, 2, 1, 1, false}));
  check_good(one_stage("ww", {1, 4, 1, 1, 1, false}));
  check_good(one_stage("kk", {1, 4, 1, 1, 1, false}));
  check_good(one_stage("dd", {1, 1, 4, 1, 1, false}));
  check_good(one_stage("mm", {1, 1, 4, 4, 1, false}));
  check_good(one_stage("mm", {2, 1, 2, 2, 2, true}));
  check_good(one_stage("mm", {2, 1, 2, 1, 4, true}));
  check_good(one_stage("mm", {2, 1, 2, 4, 1, false}));  // experts without sequence parallelism
  check_good(one_stage("ss", {2, 2, 2, 2, 2, true}));
  check_good(one_stage("ll", {4, 2, 1, 1, 1, true}));
  check_good(one_stage("pp", {2, 2, 2, 1, 1, true}));
}

TEST_CASE("every ZeRO stage and recompute mode computes what one process computes") {
  for (const int zero : {0, 1, 2, 3}) {
    check_good(one_stage("dmd", {2, 2, 2, 2, 1, true}, {zero, RecomputeMode::kNone, 0}));
    check_good(one_stage("dmd", {1, 1, 4, 2, 2, false}, {zero, RecomputeMode::kFull, 2}));
    check_good(one_stage("dmd", {2, 1, 2, 1, 1, true}, {zero, RecomputeMode::kSelective, 0}));
  }
}

TEST_CASE("adapters compute what one process computes, and what they stand beside stays as it was") {
  const auto check = [](const std::string& types, cost::Degrees degrees, cost::MemoryPolicy policy = {},
                        model::AdapterTargets targets = {}) {
    const auto blocks = static_cast<int>(types.size());
    check_good(
        make_plan(with_adapters(make_model(types, true), targets), {{4, 2, {{blocks, {{degrees, 4, policy}}}}}}));
  };
  using enum model::AdapterTarget;
  check("dd", {4, 1, 1, 1, 1, true});
  check("gg", {8, 1, 1, 1, 1, true});  // four tp ranks share each key-value head
  check("gg", {4, 1, 2, 1, 1, false}, {}, {kKey});
  check("ww", {1, 4, 1, 1, 1, false}, {}, {kQuery, kValue});
  check("ss", {2, 2, 2, 2, 2, true});
  check("ll", {4, 2, 1, 1, 1, true});
  check("pa", {2, 1, 2, 1, 1, true});
  check("dMf", {2, 1, 2, 1, 1, false}, {}, {kDown, kOutput});
  for (const int zero : {1, 2, 3}) {
    check("dg", {2, 1, 2, 1, 1, true}, {zero, RecomputeMode::kFull, 1});
    check("dm", {.dp = 4, .ep = 2, .dp_replicate = 2}, {zero, RecomputeMode::kSelective, 0});
  }
  const PartSpec one{{}, 2};
  check_good(make_plan(with_adapters(make_model("eeddd")), {{2, 3, {{3, {one}}, {5, {{{2, 1, 1, 1, 1, true}, 2}}}}}}));
}

TEST_CASE("attention of which ranks exchange heads for positions computes what one process computes") {
  const auto check = [](const std::string& types, cost::Degrees degrees, int heads, int kv_heads) {
    model::Model model = make_model(types);
    model.job.context_exchange = model::ContextExchange::kAllToAll;
    for (model::BlockType& type : model.types) {
      type.attention.heads = heads;
      type.attention.kv_heads = kv_heads;
    }
    check_good(make_plan(std::move(model), {{4, 2, {{static_cast<int>(types.size()), {{degrees, 4}}}}}}));
  };
  check("dd", {1, 4, 1, 1, 1, false}, 8, 8);
  check("dd", {2, 2, 1, 1, 1, true}, 8, 4);
  check("dw", {1, 4, 1, 1, 1, false}, 8, 2);  // two ranks have each key-value head
  check("ll", {2, 2, 2, 1, 1, true}, 8, 8);
  check("mm", {2, 2, 1, 2, 2, true}, 8, 1);
}

TEST_CASE("heads that not all ranks of cp can have are refused") {
  model::Model model = make_model("dd");
  model.job.context_exchange = model::ContextExchange::kAllToAll;
  for (model::BlockType& type : model.types) type.attention.heads = type.attention.kv_heads = 6;
  const auto report = verify(make_plan(std::move(model), {{4, 2, {{2, {{{1, 4, 1, 1, 1, false}, 4}}}}}}));
  REQUIRE(report.has_value());
  INFO(listing(*report));
  CHECK(std::ranges::any_of(report->findings, [](const Finding& f) {
    return f.message.find("6 attention heads cannot be divided by tp x cp = 4") != std::string::npos;
  }));
}

TEST_CASE("gradients of adapters that a stage does not sum are found") {
  const plan::LaunchPlan plan =
      make_plan(with_adapters(make_model("dd")), {{4, 2, {{2, {{{1, 1, 4, 1, 1, false}, 4}}}}}});
  const Report report = verified(plan, {Fault::kMissingAllReduce});
  INFO(listing(report));
  CHECK(std::ranges::any_of(report.findings, [](const Finding& f) { return f.code == "gradient-not-reduced"; }));
}

TEST_CASE("ZeRO inside groups of ranks computes what one process computes") {
  for (const int zero : {1, 2, 3}) {
    const cost::MemoryPolicy policy{zero, RecomputeMode::kNone, 0};
    check_good(one_stage("dd", {.dp = 4, .dp_replicate = 2}, policy));
    check_good(one_stage("dd", {.tp = 2, .dp = 4, .sequence_parallel = true, .dp_replicate = 2}, policy));
    check_good(one_stage("dg", {.cp = 2, .dp = 2, .dp_replicate = 2}, policy));  // shards over cp alone
    // Of four replicas of an expert two share its shards; of two each has them to itself; and a set of experts is
    // spread over both groups.
    check_good(one_stage("mm", {.dp = 4, .dp_replicate = 2}, policy));
    check_good(one_stage("mm", {.dp = 4, .ep = 2, .dp_replicate = 2}, policy));
    check_good(one_stage("ms", {.dp = 4, .ep = 4, .dp_replicate = 2}, policy));
    check_good(
        one_stage("mm", {.tp = 2, .dp = 4, .ep = 2, .etp = 2, .sequence_parallel = true, .dp_replicate = 2}, policy));
  }
  const auto mixed = cost::policy_of_runs(0, {{1, {3, RecomputeMode::kFull}}, {2, {0}}, {1, {1}}});
  check_good(one_stage("dmdm", {.dp = 4, .dp_replicate = 2}, mixed));
  // Other parts and another pipeline hold the same weights.
  const PartSpec grouped{{.dp = 4, .dp_replicate = 2}, 4, {3, RecomputeMode::kNone, 0}};
  const PartSpec alone{{.tp = 2}, 2};
  const PipelineSpec both{6, 3, {{2, {grouped, alone}}, {4, {{{.dp = 2}, 6}}}}};
  check_good(make_plan(make_model("dddd", true), {both, both}));
}

TEST_CASE("of many groups some are executed, and they are whole") {
  const PartSpec grouped{{.dp = 24, .dp_replicate = 6}, 24, {3, RecomputeMode::kNone, 0}};
  const Report report = verified(make_plan(make_model("dd"), {{24, 2, {{2, {grouped}}}}}));
  INFO(listing(report));
  CHECK(report.ok());
  const auto kept = std::ranges::find(report.shrunk, "ranks", &Shrunk::what);
  REQUIRE(kept != report.shrunk.end());
  CHECK(kept->kept == 8);  // two groups of four
}

TEST_CASE("groups that do not sum their gradients are found") {
  for (const int zero : {1, 2, 3}) {
    const cost::MemoryPolicy policy{zero, RecomputeMode::kNone, 0};
    const Report report = verified(one_stage("md", {.dp = 4, .dp_replicate = 2}, policy), {Fault::kMissingReplicaSum});
    INFO(listing(report));
    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings.front().code == "gradient-not-reduced");
    CHECK(report.findings.front().message.find("is its sharding group's alone: the sum over replicated") !=
          std::string::npos);
  }
  CHECK_FALSE(verify(one_stage("md", {.dp = 4}, {3}), {Fault::kMissingReplicaSum}));
}

TEST_CASE("blocks of a stage may differ in ZeRO stage and recompute mode") {
  const auto mixed = [](int zero_of_ends) {
    return cost::policy_of_runs(
        zero_of_ends, {{1, {3, RecomputeMode::kFull}}, {1, {1, RecomputeMode::kSelective}}, {1, {2}}, {1, {0}}});
  };
  for (const int zero : {0, 1, 2, 3}) {
    check_good(one_stage("dmdm", {2, 1, 2, 2, 1, true}, mixed(zero)));
    check_good(one_stage("dddd", {1, 2, 2, 1, 1, false}, mixed(zero)));
  }
}

TEST_CASE("stages of different degrees hand over what the plan lists") {
  check_good(three_stages());
  // dp 3 and dp 4 share no cut but the microbatch's ends; cp meets tp.
  check_good(make_plan(make_model("dddd"), {{12,
                                             3,
                                             {{1, {{{1, 1, 3, 1, 1, false}, 12}}},
                                              {2, {{{1, 1, 4, 1, 1, false}, 12}}},
                                              {3, {{{3, 1, 2, 1, 1, true}, 12}}},
                                              {4, {{{1, 4, 1, 1, 1, false}, 12}}}}}}));
}

TEST_CASE("an encoder's stream and the text cross boundaries together") {
  for (const int cut : {1, 2, 3}) {
    check_good(make_plan(make_model("eedd"), {{2,
                                               3,
                                               {{cut, {{{2, 1, 1, 1, 1, true}, 2}}},
                                                {4, {{{1, 1, 2, 1, 1, false}, 2, {3, RecomputeMode::kNone, 0}}}}}}}));
  }
}

TEST_CASE("tied embeddings are one matrix on two stages of different degrees") {
  check_good(make_plan(make_model("dd", true), {{2,
                                                 3,
                                                 {{1, {{{2, 1, 1, 1, 1, true}, 2, {1, RecomputeMode::kNone, 0}}}},
                                                  {2, {{{1, 1, 2, 1, 1, false}, 2, {3, RecomputeMode::kNone, 0}}}}}}}));
  check_good(one_stage("d", {2, 1, 2, 1, 1, true}));
}

TEST_CASE("pipelines of different cuts and shares sum what they have in common") {
  check_good(make_plan(make_model("dmmd", true),
                       {{2, 5, {{2, {{{2, 1, 1, 2, 1, true}, 2}}}, {4, {{{1, 1, 2, 2, 1, false}, 2, {2, {}, 0}}}}}},
                        {3, 2, {{4, {{{1, 1, 3, 3, 1, false}, 3, {3, RecomputeMode::kFull, 4}}}}}}}));
}

TEST_CASE("replicas with unequal samples and a smaller last microbatch sum to what one process computes") {
  // 7 samples as 2 + 2 + 2 + 1 before 3 + 2 + 2; of the last microbatch 5, 3 and 1 are left, so that some have none.
  for (const std::int64_t missing : {0, 2, 4, 6}) {
    CAPTURE(missing);
    for (const int zero : {0, 1, 2, 3}) {
      PipelineSpec spec{7,
                        3,
                        {{1, {{{2, 1, 4, 1, 1, true}, 7, {zero, RecomputeMode::kFull, 1}}}},
                         {3, {{{1, 2, 3, 3, 1, false}, 7, {zero}}}}},
                        missing};
      check_good(make_plan(make_model("dmd", true), {spec}));
    }
  }
}

TEST_CASE("every planted mistake is found and called by its name") {
  for (const FaultName& fault : fault_names()) {
    CAPTURE(fault.name);
    VerifyOptions options;
    options.fault = fault.fault;
    if (!verify(three_stages(), options)) continue;  // of interleaved chunks, which this plan has not
    const Report report = verified(three_stages(), options);
    INFO(listing(report));
    REQUIRE_FALSE(report.ok());
    CHECK(report.findings.front().code == fault.code);
  }
}

TEST_CASE("execution notices by itself what the structure would have said") {
  const auto execute_only = [](Fault fault) {
    VerifyOptions options;
    options.fault = fault;
    options.check_structure = false;
    return verified(three_stages(), options);
  };
  CHECK(execute_only(Fault::kSwappedRanks).findings.front().code == "transfer-misdirected");
  CHECK(execute_only(Fault::kDroppedTransfer).findings.front().code == "transfer-missing");
  const Report gap = execute_only(Fault::kLayerRange);
  CHECK(std::ranges::any_of(gap.findings, [](const Finding& f) { return f.code == "weight-missing"; }));
}

TEST_CASE("ranks swapped inside a tp group give other numbers, if they are let to compute") {
  plan::LaunchPlan plan = one_stage("dd", {2, 1, 1, 1, 1, true});
  std::swap(plan.ranks[0].tp, plan.ranks[1].tp);
  VerifyOptions options;
  options.check_structure = false;
  const Report report = verified(plan, options);
  REQUIRE_FALSE(report.ok());
  CHECK(report.findings.front().code == "loss-differs");
}

TEST_CASE("a fault that has nothing to act on is a usage mistake") {
  VerifyOptions options;
  options.fault = Fault::kDroppedTransfer;
  const auto report = verify(one_stage("dd", {}), options);
  REQUIRE_FALSE(report);
  CHECK(report.error().front().kind == ErrorKind::kUsage);
  CHECK(report.error().front().code == "nothing-to-inject");
}

TEST_CASE("numbers no machine could execute are refused before they are tried") {
  plan::LaunchPlan plan = one_stage("dd", {});
  plan.pipelines[0].microbatches = 1'000'000'000'000;
  plan.pipelines[0].samples = 4'000'000'000'000;
  plan.model.job.global_batch = plan.pipelines[0].samples;
  plan.stages[0].warmup = plan.pipelines[0].microbatches - 1;
  const auto report = verify(plan);
  REQUIRE_FALSE(report);
  CHECK(report.error().front().code == "warmup-too-deep");
}

TEST_CASE("interleaved chunks compute what one process computes") {
  const PartSpec one{{}, 2};
  const auto stages = [&](int count, const PartSpec& part, int blocks) {
    std::vector<StageSpec> list;
    for (int s = 0; s < count; ++s) list.push_back({blocks * (s + 1) / count, {part}});
    return list;
  };
  check_good(interleaved(make_plan(make_model("dddd"), {{2, 4, stages(2, one, 4)}}), 2, 2));
  // Chunks of one and two blocks, a last group that is longer than the pipeline and shorter than the others.
  check_good(interleaved(make_plan(make_model("dmdgdwd"), {{2, 8, stages(2, one, 7)}}), 3, 5));
  check_good(interleaved(make_plan(make_model("dmdmdmdmdm", true), {{2, 12, stages(4, one, 10)}}), 2, 4));
  const PartSpec sharded{{2, 1, 2, 2, 1, true}, 2, {1, RecomputeMode::kFull, 1}};
  check_good(interleaved(make_plan(make_model("mmmmmm"), {{2, 3, stages(3, sharded, 6)}}), 2, 3));
  // Two pipelines, a smaller last microbatch, ZeRO-3.
  const PartSpec gathered{{1, 1, 2, 1, 1, false}, 2, {3, RecomputeMode::kSelective, 0}};
  check_good(interleaved(
      make_plan(make_model("dddd"), {{2, 4, stages(2, gathered, 4), 1}, {2, 4, stages(2, gathered, 4)}}), 2, 2));
  // Stages of unlike degrees, one of them mixed: every way round is another.
  check_good(interleaved(make_plan(make_model("dddddd"), {{4,
                                                           6,
                                                           {{2, {{{2, 1, 2, 1, 1, true}, 4}}},
                                                            {4, {{{1, 1, 4, 1, 1, false}, 4}}},
                                                            {6, {{{2, 1, 1, 1, 1, false}, 1}, {{1, 1, 3}, 3}}}}}}),
                         2, 3));
}

TEST_CASE("a large batch of interleaved chunks is executed with the groups that tell of it") {
  const PartSpec one{{}, 2};
  const plan::LaunchPlan plan = interleaved(make_plan(make_model("dddd"), {{2, 1003, {{2, {one}}, {4, {one}}}}}), 2, 5);
  const Report report = verified(plan);
  INFO(listing(report));
  CHECK(report.ok());
  CHECK(report.stages[0].in_flight == 8);  // 2 + 5 + 1
  const auto kept = std::ranges::find(report.shrunk, "microbatches", &Shrunk::what);
  REQUIRE(kept != report.shrunk.end());
  CHECK(kept->kept < 40);
  CHECK(kept->kept % 5 == 3);
}

TEST_CASE("mistakes in interleaved chunks are found by their names") {
  const PartSpec one{{}, 2};
  const plan::LaunchPlan plan = interleaved(make_plan(make_model("dddd"), {{2, 4, {{2, {one}}, {4, {one}}}}}), 2, 2);
  for (const Fault fault : {Fault::kSwappedChunks, Fault::kMissingWraparound, Fault::kWrongGroup}) {
    const auto name = std::ranges::find(fault_names(), fault, &FaultName::fault);
    CAPTURE(name->name);
    const Report report = verified(plan, {fault});
    INFO(listing(report));
    CHECK(std::ranges::any_of(report.findings, [&](const Finding& f) { return f.code == name->code; }));
    // Execution notices it without a look at the structure.
    const auto executed = verify(plan, {fault, false});
    REQUIRE(executed);
    CHECK_FALSE(executed->ok());
    // A plan without chunks has nothing of the kind.
    CHECK_FALSE(verify(three_stages(), {fault}));
  }
}

TEST_CASE("weight gradients that are put off add up to what one process computes") {
  for (const std::int64_t put_off : {0, 1, 3}) {
    CAPTURE(put_off);
    check_good(zero_bubble(three_stages(), put_off));
    for (int zero = 0; zero <= 3; ++zero) {
      const PartSpec sharded{{1, 1, 2, 1, 1, false}, 2, {zero, RecomputeMode::kNone, 0}};
      const PartSpec recomputed{{2, 1, 2, 1, 1, true}, 2, {zero, RecomputeMode::kFull, 2}};
      const PartSpec context{{1, 2, 1, 1, 1, false}, 2, {zero, RecomputeMode::kSelective, 0}};
      check_good(zero_bubble(
          make_plan(make_model("dgmlsp"), {{2, 6, {{2, {sharded}}, {4, {recomputed}}, {6, {context}}}}}), put_off));
    }
  }
  const PartSpec one{{}, 2};
  check_good(
      zero_bubble(make_plan(make_model("dddd", true), {{2, 5, {{2, {one}}, {4, {one}}}}, {2, 2, {{4, {one}}}}}), 1));
}

TEST_CASE("weight gradients come where a stage is full, and at the end") {
  const auto order = [](std::int64_t put_off) {
    std::string text;
    for (const Pass& pass : zero_bubble_passes(4, 1, put_off)) {
      text += (pass.weights ? "W" : pass.backward ? "B" : "F") + std::to_string(pass.microbatch);
    }
    return text;
  };
  CHECK(order(0) == "F0F1B0W0F2B1W1F3B2B3W2W3");
  CHECK(order(1) == "F0F1B0F2B1W0F3B2B3W1W2W3");
  CHECK(order(9) == "F0F1B0F2B1F3B2B3W0W1W2W3");
}

TEST_CASE("weight gradients that a stage forgets are found") {
  const plan::LaunchPlan plan = zero_bubble(three_stages(), 1);
  const Report report = verified(plan, {Fault::kDroppedWeightGradient});
  INFO(listing(report));
  CHECK(std::ranges::any_of(report.findings, [](const Finding& f) { return f.code == "gradient-differs"; }));
  CHECK_FALSE(verify(three_stages(), {Fault::kDroppedWeightGradient}));
}
