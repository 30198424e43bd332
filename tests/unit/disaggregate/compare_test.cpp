// Kernels against simpler ways to share GPUs: published counts of kernels, and models whose memory decides.
#include "tangram/disaggregate/compare.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tables.hpp"
#include "tangram/base/at.hpp"

using namespace tangram;
using namespace tangram::tests;
using disaggregate::Arm;
using disaggregate::ArmKind;
using disaggregate::Batch;
using disaggregate::Comparison;
using disaggregate::Rule;
using disaggregate::Terms;

namespace {

// Rates by resources alone.
Terms bounds_only() {
  Terms terms;
  terms.in_flight = {1'000'000};
  terms.simulated_rounds = 0;
  return terms;
}

std::vector<Batch> batches_of(ModelCase of, const std::vector<int>& sizes) {
  std::vector<Batch> batches;
  for (const int requests : sizes) {
    of.requests = requests;
    batches.push_back({requests, model_problem(of)});
  }
  return batches;
}

std::string shown(const Comparison& comparison) {
  std::string text;
  for (const Arm& arm : comparison.arms) {
    text += std::string(to_string(arm.kind)) + ": rate " + std::to_string(arm.rate) + " bound " +
            std::to_string(arm.bound) + " simulated " + std::to_string(arm.simulated) + " requests " +
            std::to_string(arm.requests) + " x " + std::to_string(arm.in_flight) + '\n';
  }
  return text + comparison.decision.why;
}

}  // namespace

TEST_CASE("disaggregate compare: the census of GPT-oss 20B") {
  const Table table("gptoss20b_census.csv");
  double faster[2] = {0, 0};
  double all[2] = {0, 0};
  for (std::size_t row = 0; row < table.size(); ++row) {
    const int phase = table.text(row, "phase") == "decode" ? 1 : 0;
    const double seconds = table.number(row, "launches") * table.number(row, "a100_us") * 1e-6;
    at(all, phase) += seconds;
    if (table.number(row, "ratio") < 1) at(faster, phase) += seconds;
  }
  CHECK(faster[0] / all[0] == Approx(0.84).margin(0.005));
  CHECK(faster[1] / all[1] == Approx(0.11).margin(0.005));
  const std::vector<double> seconds = seconds_on_each(census_problem());
  CHECK(seconds[0] == Approx(12.89).margin(0.005));
  CHECK(seconds[1] == Approx(16.12).margin(0.005));
}

TEST_CASE("disaggregate compare: what any granularity can gain on that census, over replicas") {
  const std::vector<Batch> batches = {{32, census_problem()}};
  const Comparison comparison = disaggregate::compare(batches, bounds_only());
  INFO(shown(comparison));
  const double replicas = comparison.arm(ArmKind::kReplicas).rate;
  const auto over = [&](ArmKind kind) { return comparison.arm(kind).bound / replicas; };
  CHECK(over(ArmKind::kPhases) == Approx(0.853).margin(0.001));
  CHECK(over(ArmKind::kBlocks) == Approx(0.939).margin(0.001));
  CHECK(over(ArmKind::kBlocksShared) == Approx(1.028).margin(0.001));
  CHECK(over(ArmKind::kPhasesShared) == Approx(1.116).margin(0.001));
  CHECK(over(ArmKind::kPhaseBlocks) == Approx(1.125).margin(0.001));
  CHECK(over(ArmKind::kPhaseBlocksShared) == Approx(1.160).margin(0.001));
  CHECK(over(ArmKind::kKernels) == Approx(1.237).margin(0.001));
  CHECK(comparison.arm(ArmKind::kOneGpu).rate / replicas == Approx(0.556).margin(0.001));
  CHECK(comparison.decision.rule == Rule::kRatiosDiffer);
  CHECK(comparison.decision.simpler == ArmKind::kPhaseBlocksShared);
}

TEST_CASE("disaggregate compare: errors of the times as large as the gain leave the simpler way") {
  Batch batch{32, census_problem()};
  for (disaggregate::Kernel& kernel : batch.problem.kernels) kernel.error = 0.1;
  const Comparison comparison = disaggregate::compare({&batch, 1}, bounds_only());
  INFO(shown(comparison));
  CHECK(comparison.decision.rule == Rule::kWithinErrors);
  CHECK(comparison.decision.arm == ArmKind::kPhaseBlocksShared);
  const Arm& kernels = comparison.arm(ArmKind::kKernels);
  CHECK(kernels.low == Approx(kernels.rate / 1.1));
  CHECK(kernels.high == Approx(kernels.rate / 0.9));
}

TEST_CASE("disaggregate compare: equal requests in memory, 8B on an A100 and an L40S") {
  for (const int context : {1024, 4096}) {
    for (const int requests : {32, 128}) {
      const std::vector<Batch> batches =
          batches_of({.context = context, .memory = {72e9, 43e9}, .head = true}, {4, 8, 16, 32, 64, 128});
      Terms terms;
      terms.most_requests = requests;
      terms.in_flight = {2, 4};
      const Comparison comparison = disaggregate::compare(batches, terms);
      INFO(context << ' ' << requests << '\n' << shown(comparison));
      CHECK(comparison.decision.arm == ArmKind::kReplicas);
      CHECK(comparison.decision.rule == Rule::kWeightsPerMicroBatch);
      CHECK_THAT(comparison.decision.why, ContainsSubstring("weights are read per micro-batch"));
      CHECK(comparison.arm(ArmKind::kKernels).requests_in_memory <= requests);
    }
  }
}

TEST_CASE("disaggregate compare: 32B on an A100 of 80 GB and an L40S of 48 GB") {
  const std::vector<Batch> batches =
      batches_of({.model = "qwen32b", .context = 1024, .memory = {72e9, 43e9}, .head = true}, {32, 48, 64, 96});
  Terms terms;
  terms.in_flight = {1, 2, 3};
  terms.simulated_rounds = 0;
  const Comparison comparison = disaggregate::compare(batches, terms);
  INFO(shown(comparison));
  CHECK(comparison.decision.arm == ArmKind::kKernels);
  WARN(shown(comparison));
}
