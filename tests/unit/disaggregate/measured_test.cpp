// Measured ways to share GPUs: read, and what a second micro-batch is worth where kernels are split.
#include "tangram/disaggregate/measured.hpp"

#include <cstdint>
#include <utility>

#include "support/catch.hpp"
#include "tables.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/disaggregate/timeline.hpp"
#include "tangram/io/file.hpp"
#include "tangram/kernels/document.hpp"

using namespace tangram;
using namespace tangram::tests;
using disaggregate::ArmKind;
using disaggregate::MeasuredArm;
using disaggregate::Problem;

namespace {

constexpr int kRequests = 32;

const std::string kServing = TANGRAM_SOURCE_DIR "/configs/measurements/serving/";

std::string text_of(const std::string& name) {
  auto text = io::read_file(kServing + name);
  REQUIRE(text.has_value());
  return std::move(*text);
}

/// GPT-oss 20B's census on one A100 and one L40S, messages as its authors measured them.
Problem gpt_oss(double generated) {
  const auto fleet = cluster::read_fleet(text_of("a100-pcie-l40s.json"), "fleet");
  REQUIRE(fleet.has_value());
  const auto graph = kernels::read_kernel_graph(text_of("gpt-oss-20b.json"), "graph");
  REQUIRE(graph.has_value());
  auto problem = disaggregate::problem_of(*fleet, *graph, {1, generated, 1e-4, 1e-4});
  REQUIRE(problem.has_value());
  return std::move(*problem);
}

/// Each kernel where it takes the least of what both GPUs have, as if messages took no time.
disaggregate::Placement by_time_alone(Problem problem) {
  constexpr int kMany = 1'000'000;
  for (disaggregate::GpuClass& gpus : problem.classes) gpus.memory = disaggregate::kNever;
  problem.links = Grid<disaggregate::Link>(problem.class_count(), problem.class_count());
  return solve(with_in_flight(std::move(problem), kMany), disaggregate::Objective::kThroughput).placement;
}

double tokens_of(const Problem& problem, ArmKind kind, int in_flight = 1) {
  MeasuredArm arm;
  arm.kind = kind;
  arm.gpu = kind == ArmKind::kOneGpu ? "A100-80GB-PCIe" : "";
  arm.in_flight = in_flight;
  const auto tokens = disaggregate::predicted_tokens({kRequests, problem}, arm);
  REQUIRE(tokens.has_value());
  return *tokens;
}

}  // namespace

TEST_CASE("disaggregate measured: the recorded kernels of GPT-oss 20B take what its census says") {
  const Problem problem = gpt_oss(637);
  // A round is one pass of decode, and prefill as often as its requests need.
  const std::vector<double> seconds = seconds_on_each(problem);
  const std::vector<double> census = seconds_on_each(census_problem());
  REQUIRE(seconds.size() == 2);
  for (std::size_t c = 0; c < 2; ++c) CHECK(637 * seconds[c] == Approx(census[c]).epsilon(1e-3));
}

TEST_CASE("disaggregate measured: a second micro-batch gains what it gained, and stays below one A100") {
  const Problem problem = gpt_oss(384);
  const disaggregate::Placement placement = by_time_alone(problem);
  const auto period = [&](int in_flight) {
    return disaggregate::simulated_period(with_in_flight(problem, in_flight), {{1, placement}});
  };
  const double gain = period(1) / period(2);
  INFO(gain);
  CHECK(gain > 1.2);  // the artifact of FluidGPU: 887.4 and 1,139.1 tokens/s, 1.28
  CHECK(gain < 1.5);
  CHECK(kRequests / period(2) < tokens_of(problem, ArmKind::kOneGpu));
}

TEST_CASE("disaggregate measured: splits come in the order in which they were measured") {
  const Problem problem = gpt_oss(684);
  const double alone = tokens_of(problem, ArmKind::kOneGpu);
  const double replicas = tokens_of(problem, ArmKind::kReplicas);
  const double phases = tokens_of(problem, ArmKind::kPhases);
  const double overflow = tokens_of(problem, ArmKind::kPhasesShared, 2);
  const double blocks = tokens_of(problem, ArmKind::kBlocks);
  CHECK(overflow > replicas);
  CHECK(replicas > phases);
  CHECK(phases > alone);
  CHECK(blocks < 1.05 * alone);
  // Measured 2,021 and 2,030 over 1,252 tokens/s.
  CHECK(replicas / alone == Approx(2021.0 / 1252).epsilon(0.12));
  CHECK(phases / alone == Approx(2030.0 / 1252).epsilon(0.15));
}

TEST_CASE("disaggregate measured: a GPU that the cluster does not have is an error") {
  MeasuredArm arm;
  arm.gpu = "T4";
  CHECK_FALSE(disaggregate::predicted_tokens({kRequests, gpt_oss(684)}, arm));
}

TEST_CASE("disaggregate measured: rows are read, and mistakes have their places") {
  const auto read = disaggregate::read_serving_measurements(text_of("fluidgpu.json"), "m.json");
  REQUIRE(read.has_value());
  REQUIRE(read->cases.size() == 3);
  CHECK(read->cases.front().arms.size() == 6);
  CHECK(read->cases.front().arms.back().kind == ArmKind::kBlocks);
  CHECK(read->cases.front().deployment.message_seconds == Approx(1e-4));
  const auto wrong = disaggregate::read_serving_measurements(R"({"schema": "tangram.serving_measurements/1",
    "source": "s", "cases": [{"name": "n", "cluster": "c", "model": "m", "graph": "g", "prompt_tokens": 10000000,
    "generated_tokens": 1, "requests": 60000, "message_us": 0, "message_gpu_us": 0,
    "rows": [{"arm": "replika", "tokens_s": 1}]}]})",
                                                             "m.json");
  REQUIRE_FALSE(wrong.has_value());
  REQUIRE(wrong.error().size() == 3);
  CHECK(wrong.error()[0].code == "model-or-graph");
  CHECK(wrong.error()[1].code == "too-many-tokens");
  CHECK(wrong.error()[2].pointer == "/cases/0/rows/0/arm");
}
