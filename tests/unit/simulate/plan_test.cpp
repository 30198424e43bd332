// From a launch plan to a schedule, predictions and a trace.
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "tangram/simulate/simulate.hpp"

using namespace tangram;
using namespace tangram::literals;

namespace {

constexpr auto kMs = 1'000'000;

cluster::GpuType gpu(const char* name, double peak_tflops) {
  cluster::GpuType type;
  type.name = name;
  type.peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(peak_tflops * 1e12);
  return type;
}

plan::Part part(int island, int first_rank, int gpus, std::int64_t forward_ms, std::int64_t backward_ms) {
  plan::Part result;
  result.island = island;
  result.first_rank = first_rank;
  result.strategy.degrees.tp = gpus;
  result.predicted.forward = Nanoseconds(forward_ms * kMs);
  result.predicted.backward = Nanoseconds(backward_ms * kMs);
  return result;
}

/// Two stages: 2 GPUs of "fast" (10 + 20 ms, warm-up 1), 1 GPU of "slow" (10 + 30 ms); boundary of 2 ms, 1 ms busy; M
/// = 3.
plan::LaunchPlan two_stages() {
  plan::LaunchPlan plan;
  plan.model.types.emplace_back();
  plan.model.types[0].hidden = 64;
  plan.model.types[0].tokens = 100;
  plan.model.types[0].attention.heads = 4;
  plan.model.types[0].attention.kv_heads = 4;
  plan.model.types[0].attention.head_dim = 16;
  plan.model.types[0].feed_forward.hidden = 256;
  plan.model.blocks = {0, 0, 0};
  plan.model.vocabulary = 1000;
  plan.model.hidden = 64;
  plan.model.job.sequence_length = 100;
  plan.model.job.global_batch = 6;

  plan.islands.resize(2);
  plan.islands[0].device = gpu("fast", 100);
  plan.islands[0].price_per_gpu_hour = Dollars(2);
  plan.islands[1].id = 1;
  plan.islands[1].device = gpu("slow", 50);
  plan.islands[1].price_per_gpu_hour = Dollars(1);
  plan.pipelines.push_back({0, 6, 2, 3, {0, 1}});

  plan::Stage first;
  first.chunks = {{0, 2}};
  first.warmup = 1;
  first.parts.push_back(part(0, 0, 2, 10, 20));
  plan::Stage second;
  second.id = 1;
  second.chunks = {{2, 3}};
  second.parts.push_back(part(1, 2, 1, 10, 30));
  second.parts[0].predicted.gradient_sync_exposed = Nanoseconds(50 * kMs);
  second.parts[0].predicted.optimizer_step = Nanoseconds(5 * kMs);
  plan.stages = {first, second};

  plan::Boundary boundary;
  boundary.to = 1;
  boundary.latency = 2_ms;
  boundary.occupancy = 1_ms;
  plan.boundaries.push_back(boundary);
  for (int i = 0; i < 3; ++i) {
    plan::Rank rank;
    rank.rank = i;
    rank.island = i < 2 ? 0 : 1;
    rank.stage = rank.island;
    plan.ranks.push_back(rank);
  }
  return plan;
}

}  // namespace

TEST_CASE("simulate: a plan's schedule is what the plan says") {
  const simulate::Schedule schedule = simulate::schedule_of(two_stages());
  REQUIRE(schedule.pipelines.size() == 1);
  const simulate::SimPipeline& pipeline = schedule.pipelines[0];
  CHECK(pipeline.microbatches == 3);
  REQUIRE(pipeline.stages.size() == 2);
  CHECK(pipeline.stages[0].warmup == 1);
  CHECK(pipeline.stages[0].latency == 2_ms);
  CHECK(pipeline.stages[0].occupancy == 1_ms);
  CHECK(pipeline.stages[1].latency == 0_ms);
  REQUIRE(pipeline.stages[1].parts.size() == 1);
  CHECK(pipeline.stages[1].parts[0].backward == 30_ms);
  CHECK(pipeline.stages[1].parts[0].exposed_sync == 50_ms);
  CHECK(pipeline.stages[1].parts[0].optimizer_step == 5_ms);
}

TEST_CASE("simulate: predictions follow from the simulated iteration") {
  // Milliseconds:
  //   stage 0: F0@0-10 F1@10-20               B0@54-74 F2@74-84 B1@94-114        B2@134-154
  //   stage 1:         F0@12-22 B0@22-52 F1@52-62 B1@62-92 F2@92-102 B2@102-132
  // Gradients leave stage 1 at 52, 92 and 132 and take 2. Sync of stage 1: 132-182, optimizer 182-187.
  plan::LaunchPlan plan = two_stages();
  plan.predicted.closed_form = 1_ms;
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
  REQUIRE(result.last_backward == 154_ms);
  REQUIRE(result.iteration == 187_ms);
  simulate::predict(plan, result, FlopsPerSecond(400e12));

  const plan::Predicted& p = plan.predicted;
  CHECK(p.iteration == 187_ms);
  CHECK(p.closed_form == 1_ms);
  CHECK(p.tokens_per_s == Approx(6 * 100 / 0.187));
  // The plan uses 2 x 100 + 50 = 250 TFLOP/s, the fleet has 400.
  const double flops = model::model_flops_per_iteration(plan.model).value();
  CHECK(p.mfu == Approx(flops / 0.187 / 250e12));
  CHECK(p.mfu_fleet == Approx(flops / 0.187 / 400e12));
  // 2 x 2 + 1 = 5 dollars an hour; 600 tokens.
  CHECK(p.cost_per_mtoken == Approx(5.0 * 0.187 / 3600 / 600 * 1e6));
  // Stage 1 computes 3 x 40 = 120 ms, then syncs 50 ms; of the 182 ms before the optimizer 12 are bubble.
  CHECK(p.bottleneck_stage == 1);
  CHECK(p.breakdown.compute == Approx(0.120));
  CHECK(p.breakdown.exposed_sync == Approx(0.050));
  CHECK(p.breakdown.bubble == Approx(0.012));
  CHECK(p.breakdown.optimizer == Approx(0.005));
  CHECK(p.bubble_fraction == Approx(12.0 / 187));
}

TEST_CASE("simulate: predictions that a plan's simulation does not give are named") {
  plan::LaunchPlan good = two_stages();
  const FlopsPerSecond fleet(400e12);
  simulate::predict(good, simulate::simulate(simulate::schedule_of(good)), fleet);
  CHECK(simulate::differences(good, fleet).empty());
  const auto first = [&](auto edit) {
    plan::LaunchPlan plan = good;
    edit(plan.predicted);
    const auto found = simulate::differences(plan, fleet);
    return found.empty() ? ""
                         : found.front().code + " " + found.front().message.substr(0, found.front().message.find(' '));
  };
  CHECK(first([](plan::Predicted& p) { p.iteration -= 1_ns; }) == "simulation-differs iteration_s");
  CHECK(first([](plan::Predicted& p) { p.bottleneck_stage = 0; }) == "simulation-differs bottleneck_stage");
  CHECK(first([](plan::Predicted& p) { p.bubble_fraction = -0.1; }) == "simulation-differs bubble_fraction");
  CHECK(first([](plan::Predicted& p) { p.breakdown.bubble = -1; }) == "simulation-differs breakdown.bubble_s");
  CHECK(first([](plan::Predicted& p) { p.tokens_per_s *= 1.001; }) == "prediction-differs tokens_per_s");
  CHECK(first([](plan::Predicted& p) { p.mfu *= 1.001; }) == "prediction-differs mfu");
  CHECK(first([](plan::Predicted& p) { p.mfu_fleet = 1; }) == "prediction-differs mfu_fleet");
  CHECK(first([](plan::Predicted& p) { p.cost_per_mtoken = 0; }) == "prediction-differs cost_per_mtoken");
}

TEST_CASE("simulate: of a plan with more passes than anybody waits for, only rates are compared") {
  plan::LaunchPlan plan = two_stages();
  plan.pipelines[0].microbatches = 1'000'000'000'000;
  plan.pipelines[0].samples = 2'000'000'000'000;
  plan.predicted.iteration = 187_ms;
  simulate::set_rates(plan, 187_ms, FlopsPerSecond(0), plan.predicted);
  CHECK(simulate::differences(plan).empty());
  plan.predicted.tokens_per_s *= 2;
  REQUIRE(simulate::differences(plan).size() == 1);
  CHECK(simulate::differences(plan).front().code == "prediction-differs");
}

TEST_CASE("simulate: an unknown price or fleet leaves the figures that need it alone") {
  plan::LaunchPlan plan = two_stages();
  plan.islands[1].price_per_gpu_hour = Dollars(0);
  plan.predicted.mfu_fleet = 0.25;
  simulate::predict(plan, simulate::simulate(simulate::schedule_of(plan)), FlopsPerSecond(0));
  CHECK(plan.predicted.cost_per_mtoken == 0);
  CHECK(plan.predicted.mfu_fleet == 0.25);
}

TEST_CASE("simulate: the trace is Chrome's format, in exact microseconds") {
  plan::LaunchPlan plan = two_stages();
  plan.stages[0].parts[0].predicted.forward = Nanoseconds(10'000'001);
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan), true);
  const std::string text = simulate::write_trace(plan, result);
  CHECK(text.find(R"("ts":0.000,"dur":10000.001)") != std::string::npos);

  const nlohmann::json trace = nlohmann::json::parse(text);
  std::map<std::string, int> phases;
  for (const auto& event : trace["traceEvents"]) ++phases[event["ph"].get<std::string>()];
  CHECK(phases["X"] == 12 + 1 + 1);  // 2 stages x 3 x (F, B), one sync, one optimizer step that takes time
  CHECK(phases["b"] == 6);           // 3 activations, 3 gradients
  CHECK(phases["e"] == 6);
  CHECK(phases["M"] == 1 + 2 * 2);
  const auto& first = trace["traceEvents"][1];
  CHECK(first["name"] == "thread_name");
  CHECK(first["args"]["name"] == "stage 0: 2 x fast, layers 0-1");
}

TEST_CASE("simulate: the trace names model chunks, the way round, and weight gradients") {
  const plan::LaunchPlan plan = two_stages();
  simulate::Schedule schedule = simulate::schedule_of(plan);
  simulate::SimPipeline& pipeline = schedule.pipelines[0];
  pipeline.stages[1].latency = 2_ms;
  for (simulate::SimStage& stage : pipeline.stages) stage.parts[0].weight_gradient = 10_ms;
  pipeline.kind = simulate::ScheduleKind::kZeroBubble;
  const auto has = [](const std::string& trace, const char* text) { return trace.find(text) != std::string::npos; };
  const std::string split = simulate::write_trace(plan, simulate::simulate(schedule, true));
  CHECK(has(split, R"("name":"W2","cat":"weight gradient")"));

  for (simulate::SimStage& stage : pipeline.stages) stage.parts[0].chunks = {{5_ms, 10_ms}, {5_ms, 10_ms}};
  pipeline.kind = simulate::ScheduleKind::kInterleaved;
  pipeline.microbatches = 4;
  pipeline = simulate::with_classic_warmups(pipeline);
  const std::string chunked = simulate::write_trace(plan, simulate::simulate(schedule, true));
  CHECK(has(chunked, R"("name":"F3 chunk 1")"));
  CHECK(has(chunked, R"("name":"activation 0 chunk 0, stage 1 to 0")"));
  CHECK(has(chunked, R"("name":"gradient 0 chunk 1, stage 0 to 1")"));
}
