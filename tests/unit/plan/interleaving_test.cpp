// Plans of interleaved model chunks: the judge accepts good ones, and catches every fault that is planted in one.
#include <algorithm>
#include <functional>
#include <random>

#include "findings.hpp"
#include "support/catch.hpp"
#include "support/interleaved.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

std::string listed(const CheckReport& report) {
  std::string text;
  for (const auto& v : report.violations) text += v.code + " at " + v.where + ": " + v.message + "\n";
  return text;
}

bool is_found(const CheckReport& report, const std::string& code) {
  return std::ranges::any_of(report.violations, [&](const Violation& v) { return v.code == code; });
}

struct InterleavedFault {
  std::string code;
  std::string what;
  std::function<void(LaunchPlan&)> plant;
};

PartPrediction& predicted_of(LaunchPlan& plan, std::size_t stage) { return plan.stages[stage].parts[0].predicted; }

/// Stage s holds blocks s and 4 + s.
const std::vector<InterleavedFault>& interleaved_faults() {
  static const std::vector<InterleavedFault> list{
      {"schedule-unknown", "a runtime without it", [](LaunchPlan& p) { p.runtime = runtime::Target::kFlagscale; }},
      {"schedule-unknown", "another one without it", [](LaunchPlan& p) { p.runtime = runtime::Target::kMimo; }},
      {"chunks-differ", "a stage with one chunk",
       [](LaunchPlan& p) {
         p.stages[1].chunks.pop_back();
         predicted_of(p, 1).chunks.pop_back();
       }},
      {"bad-reference", "a chunk without times", [](LaunchPlan& p) { predicted_of(p, 2).chunks.pop_back(); }},
      {"bad-reference", "chunks in the wrong order",
       [](LaunchPlan& p) { std::swap(p.stages[1].chunks[0], p.stages[1].chunks[1]); }},
      {"bad-reference", "a chunk of nothing", [](LaunchPlan& p) { p.stages[1].chunks[0].last = 1; }},
      {"group-refused", "no groups", [](LaunchPlan& p) { p.group = 0; }},
      {"group-refused", "groups shorter than the pipeline", [](LaunchPlan& p) { p.group = 3; }},
      {"group-refused", "a last group shorter than the pipeline", [](LaunchPlan& p) { p.group = 5; }},
      {"group-refused", "groups longer than the batch", [](LaunchPlan& p) { p.group = 9; }},
      {"blocks-not-covered", "chunks of two stages swapped",
       [](LaunchPlan& p) { std::swap(p.stages[1].chunks[1], p.stages[2].chunks[1]); }},
      {"blocks-not-covered", "a block in two chunks", [](LaunchPlan& p) { p.stages[2].chunks[0].last = 4; }},
      {"blocks-not-covered", "a missing end",
       [](LaunchPlan& p) {
         p.stages[3].chunks[1] = {6, 7};
         p.stages[3].head = false;
       }},
      {"embedding-misplaced", "an embedding too many", [](LaunchPlan& p) { p.stages[1].embedding = true; }},
      {"head-misplaced", "no head", [](LaunchPlan& p) { p.stages[3].head = false; }},
      {"recompute-layers", "more layers than a chunk has",
       [](LaunchPlan& p) {
         for (Stage& stage : p.stages) stage.parts[0].strategy.policy = {1, cost::RecomputeMode::kFull, 2};
       }},
      {"block-runs", "blocks that are not alike",
       [](LaunchPlan& p) { p.stages[0].parts[0].strategy.policy.runs = {{1, {1}}, {1, {0}}}; }},
      {"boundary-missing", "no way round", [](LaunchPlan& p) { p.boundaries.pop_back(); }},
      {"boundary-extra", "the way round twice", [](LaunchPlan& p) { p.boundaries.push_back(p.boundaries.back()); }},
      {"boundary-latency", "a faster way round", [](LaunchPlan& p) { p.boundaries.back().latency -= Nanoseconds(1); }},
      {"transfer-missing", "a transfer less on the way round",
       [](LaunchPlan& p) { p.boundaries.back().transfers.pop_back(); }},
      {"cost-differs", "a faster chunk", [](LaunchPlan& p) { predicted_of(p, 1).chunks[1].forward -= Nanoseconds(1); }},
      {"cost-differs", "a slower chunk",
       [](LaunchPlan& p) { predicted_of(p, 1).chunks[0].backward += Nanoseconds(1); }},
      {"cost-differs", "a leaner chunk", [](LaunchPlan& p) { predicted_of(p, 1).chunks[0].activation -= Bytes(1); }},
      {"cost-differs", "chunks that do not add up",
       [](LaunchPlan& p) { predicted_of(p, 1).forward -= Nanoseconds(1); }},
      {"memory-differs", "a lower peak", [](LaunchPlan& p) { predicted_of(p, 0).peak_memory -= Bytes(1); }},
      {"memory-exceeded", "a smaller GPU",
       [](LaunchPlan& p) { p.islands[0].device.memory = p.islands[0].device.reserved + Bytes(1); }},
      {"warmup-not-classic", "one forward pass too few",
       [](LaunchPlan& p) {
         --p.stages[1].warmup;
         --predicted_of(p, 1).in_flight;
       }},
      {"warmup-not-classic", "the warm-up of 1F1B",
       [](LaunchPlan& p) {
         p.stages[1].warmup = 2;
         predicted_of(p, 1).in_flight = 3;
       }},
      {"warmup-differs", "a warm-up of its own", [](LaunchPlan& p) { ++p.stages[2].warmup; }},
      {"in-flight-range", "more passes than there are", [](LaunchPlan& p) { predicted_of(p, 0).in_flight = 17; }},
      {"closed-form-differs", "a shorter time",
       [](LaunchPlan& p) { p.predicted.closed_form = p.predicted.closed_form * 99 / 100; }},
      {"iteration-too-short", "less than the order allows",
       [](LaunchPlan& p) { p.predicted.iteration = p.predicted.closed_form / 2; }},
  };
  return list;
}

InterleavedStage equal_stage(std::size_t chunks, std::int64_t forward, std::int64_t backward, std::int64_t latency) {
  InterleavedStage stage;
  stage.forward.assign(chunks, forward);
  stage.backward.assign(chunks, backward);
  stage.compute = static_cast<std::int64_t>(chunks) * (forward + backward);
  stage.latency = latency;
  return stage;
}

}  // namespace

TEST_CASE("a good interleaved plan passes") {
  const LaunchPlan plan = interleaved_plan();
  CHECK(listed(check(plan)).empty());
  CHECK(plan.chunks() == 2);
  CHECK(plan.schedule() == runtime::Schedule::kInterleaved);
  CHECK(plan.places_of(plan.stage(1)) == std::vector<std::size_t>{1, 5});
  CHECK(plan.stage(1).blocks() == std::vector<int>{1, 5});
  CHECK(plan.stage(1).block_count() == 2);
  // 2 (S - 1 - s) + (v - 1) G
  CHECK(plan.stage(0).warmup == 10);
  CHECK(plan.stage(3).warmup == 4);
  const auto megatron = std::ranges::find(plan.targets, "megatron", &TargetVerdict::target);
  CHECK(megatron->ok);
  const auto flagscale = std::ranges::find(plan.targets, "flagscale", &TargetVerdict::target);
  CHECK(flagscale->reasons.front().code == "FS_INTERLEAVED");
}

TEST_CASE("chunks may have unlike sizes, groups be larger than the pipeline") {
  World world = make_world();
  const auto alike = strategy(2, 1, 4, 1, 1, 1);
  const std::vector<StageSpec> stages{{3, {{0, 8, 4, alike}}}, {8, {{0, 8, 4, alike}}}};
  const LaunchPlan plain = make_plan(world, make_composition(world, 1, 4, 7, stages));
  for (const std::size_t chunks : {2U, 3U, 4U}) {
    CAPTURE(chunks);
    const LaunchPlan plan = test::interleaved(plain, chunks, 4);
    CHECK(listed(check(plan)).empty());
  }
}

TEST_CASE("replicas of an interleaved pipeline pass") {
  World world = make_world();
  const auto alike = strategy(2, 1, 2, 1, 1, 1);
  const std::vector<StageSpec> stages{{3, {{0, 4, 4, alike}}}, {8, {{0, 4, 4, alike}}}};
  LaunchPlan plain = make_plan(world, make_composition(world, 2, 4, 4, stages));
  const LaunchPlan plan = test::interleaved(plain, 2, 2);
  CHECK(listed(check(plan)).empty());
}

TEST_CASE("every fault of an interleaved plan is caught") {
  for (const InterleavedFault& fault : interleaved_faults()) {
    CAPTURE(fault.code, fault.what);
    LaunchPlan plan = interleaved_plan();
    fault.plant(plan);
    const CheckReport report = check(plan);
    CAPTURE(listed(report));
    CHECK(is_found(report, fault.code));
  }
}

TEST_CASE("Megatron-LM refuses groups and warm-ups that its schedule has not") {
  const auto refused = [](const std::function<void(LaunchPlan&)>& change) {
    LaunchPlan plan = interleaved_plan();
    change(plan);
    const auto reasons = reasons_against(plan, runtime::Target::kMegatron);
    return reasons.empty() ? std::string() : reasons.front().code;
  };
  CHECK(refused([](auto&) {}).empty());
  CHECK(refused([](auto& p) { p.group = 3; }) == "MLM_GROUP");
  CHECK(refused([](auto& p) { p.group = 5; }) == "MLM_GROUP");
  CHECK(refused([](auto& p) { ++p.stages[1].warmup; }) == "MLM_WARMUP");
  CHECK(refused([](auto& p) { --p.stages[1].warmup; }) == "MLM_WARMUP");
  CHECK(refused([](auto& p) {
          for (Stage& stage : p.stages) stage.parts[0].strategy.policy.recompute = cost::RecomputeMode::kFull;
          p.stages[1].parts[0].strategy.policy.recompute_layers = 1;
        }) == "MLM_RECOMPUTE_LAYERS_VARY");
  LaunchPlan mimo = interleaved_plan();
  CHECK(std::ranges::any_of(reasons_against(mimo, runtime::Target::kMimo),
                            [](const TargetReason& r) { return r.code == "MIMO_INTERLEAVED"; }));
}

TEST_CASE("an interleaved plan is read as it was written") {
  LaunchPlan plan = interleaved_plan();
  const std::string text = write_plan(plan);
  auto read = read_plan(text, "plan.json");
  REQUIRE(read);
  CHECK(read->group == 4);
  CHECK(read->stages == plan.stages);
  CHECK(read->boundaries == plan.boundaries);
  CHECK(read->targets == plan.targets);
  CHECK(listed(check(*read)).empty());
  CHECK(write_plan(*read) == text);
  CHECK(text.find("\"interleaving\": {\"group\": 4}") != std::string::npos);
  CHECK(text.find("\"transfers\": \"forward-blocking\"") != std::string::npos);
  CHECK(text.find("\"blocks\": [1, 6]") != std::string::npos);
  CHECK(text.find("\"chunks\": [\n        [1, 2],\n        [5, 6]\n      ]") != std::string::npos);
}

TEST_CASE("a plan of one range of blocks a stage says nothing of chunks") {
  World world = make_world();
  LaunchPlan plan = good_plan(world);
  const std::string text = write_plan(plan);
  CHECK(text.find("chunks") == std::string::npos);
  CHECK(text.find("interleaving") == std::string::npos);
}

TEST_CASE("files whose chunks make no sense are refused") {
  LaunchPlan plan = interleaved_plan();
  const std::string text = write_plan(plan);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string wrong = text;
    const auto at = wrong.find(from);
    REQUIRE(at != std::string::npos);
    const auto read = read_plan(wrong.replace(at, from.size(), to), "plan.json");
    REQUIRE_FALSE(read);
    return read.error().front().code;
  };
  const std::string chunks = "\"chunks\": [\n        [1, 2],\n        [5, 6]\n      ]";
  CHECK(refused(chunks, "\"chunks\": []") == "wrong-range");
  CHECK(refused(chunks, "\"chunks\": [[1, 2], 5]") == "wrong-range");
  CHECK(refused(chunks, "\"chunks\": [[1, 2], [5, 99]]") == "wrong-range");
  CHECK(refused(chunks, "\"chunks\": [[1, 6]]") == "inconsistent");
  CHECK(refused(chunks, "\"chunks\": [[1, 2], [5, 7]]") == "inconsistent");
  CHECK(refused("\"group\": 4", "\"group\": 0") == "out-of-range");
}

TEST_CASE("activations of chunks: their peak is found without a walk over all passes") {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    PartPrediction part;
    part.chunks.resize(static_cast<std::size_t>(draw(2, 5)));
    for (ChunkPrediction& chunk : part.chunks) chunk.activation = Bytes(draw(0, 9));
    const std::int64_t microbatches = draw(1, 60);
    const std::int64_t group = draw(1, 9);
    const std::int64_t passes = microbatches * static_cast<std::int64_t>(part.chunks.size());
    const std::int64_t warmup = draw(0, std::min<std::int64_t>(passes, 50) - 1);
    CAPTURE(part.chunks.size(), microbatches, group, warmup);
    // In a short batch or with a warm-up of no runtime a chunk may go backward before it went forward.
    if (warmup + 1 < (static_cast<std::int64_t>(part.chunks.size()) - 1) * group + 1) continue;
    CHECK(interleaved_activations(part, microbatches, group, warmup) ==
          test::held_at_peak(part, microbatches, group, warmup));
  }
  // Files may hold any numbers.
  PartPrediction part;
  part.chunks = {{{}, {}, Bytes(3)}, {{}, {}, Bytes(5)}};
  CHECK(interleaved_activations(part, 1'000'000'000'000, 4, 10) == test::held_at_peak(part, 40, 4, 10));
}

TEST_CASE("equal chunks without transfers take M v t + (S - 1) t at least, and by closed form") {
  const std::vector<InterleavedStage> stages(4, equal_stage(2, 10, 20, 0));
  CHECK(interleaved_least(stages, 8, runtime::Transfers::kForwardBlocking) == 8 * 2 * 30 + 3 * 30);
  CHECK(interleaved_closed_form(stages, 8, 4, runtime::Transfers::kForwardBlocking) == 8 * 2 * 30 + 3 * 30);
}

TEST_CASE("no iteration is shorter than what stages wait for behind their forward passes") {
  // Two stages of two chunks, 3 one way and 5 round, M = 2. Stage 0 waits 2 x 2 x 3 behind its passes, stage 1, which
  // keeps the output of the last chunk, 2 x 5:
  //   stage 0: 120 + 12 + 1 of exposed synchronisation = 133
  //   stage 1: begins at 10 + 3, 120 + 10, then 3 + 20 back on stage 0: 166, and 1 exposed
  std::vector<InterleavedStage> stages{equal_stage(2, 10, 20, 3), equal_stage(2, 10, 20, 5)};
  stages[0].exposed = 1;
  CHECK(interleaved_least(stages, 2, runtime::Transfers::kForwardBlocking) == 167);
  CHECK(interleaved_least(stages, 2, runtime::Transfers::kOverlapped) == 157);
}

TEST_CASE("the closed form of chunks has its period from runs of stages, and what they wait for the way around") {
  // As above: passes of 30. Blocking, stage 1 keeps a period of 30 + 5; the way over both is 66 + 5 in three of them.
  // A = max(30 + 10 + 3, 31 + 36) = 67, three periods more, and the way around, 66 + 10, is 6 longer than a group of
  // two: 67 + 105 + 6. Overlapped, the period is 30, and the group 16 shorter: 67 + 90 + 16.
  std::vector<InterleavedStage> stages{equal_stage(2, 10, 20, 3), equal_stage(2, 10, 20, 5)};
  stages[0].exposed = 1;
  CHECK(interleaved_closed_form(stages, 2, 2, runtime::Transfers::kForwardBlocking) == 178);
  CHECK(interleaved_closed_form(stages, 2, 2, runtime::Transfers::kOverlapped) == 173);
  // Links that are busy longer than passes set the period: 67 + 3 * 40 overlapped, and nothing to wait for.
  stages[1].occupancy = 40;
  CHECK(interleaved_closed_form(stages, 2, 2, runtime::Transfers::kOverlapped) == 187);
}

TEST_CASE("warm-ups end with the passes there are") {
  CHECK(interleaved_warmup(0, 4, 2, 4, 100) == 10);
  CHECK(interleaved_warmup(3, 4, 2, 4, 100) == 4);
  CHECK(interleaved_warmup(0, 4, 2, 4, 4) == 8);
}
