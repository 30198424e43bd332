#include <algorithm>
#include <string>

#include "support/catch.hpp"
#include "tangram/base/digest.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

LaunchPlan example_plan() {
  World world = make_world();
  LaunchPlan plan = good_plan(world);
  plan.provenance.version = "0.1.0";
  plan.provenance.inputs = {{"cluster", "c0ffee"}, {"model", "5eed"}};
  plan.provenance.parallelizers = {"enumerator"};
  plan.provenance.space = R"({"name":"tangram/space-2","replicas":[1,2],"ratio":0.5})";
  plan.provenance.states = 12;
  plan.provenance.search_bound = Nanoseconds(123'456'789);
  plan.provenance.search_gap = 0.1;
  plan.idle[0].reason = "said \"no\"";
  plan.stages[0].parts[0].opaque = "{\"x\": [1]}\n";
  plan.predicted.tokens_per_s = 1e6 / 3;
  plan.predicted.mfu = 0.37;
  return plan;
}

void check_equal(const LaunchPlan& a, const LaunchPlan& b) {
  CHECK(a.plan_id == b.plan_id);
  CHECK(a.fleet_name == b.fleet_name);
  CHECK(a.fleet_gpus == b.fleet_gpus);
  CHECK(model::write_model(a.model) == model::write_model(b.model));
  CHECK(a.islands == b.islands);
  CHECK(a.pipelines == b.pipelines);
  CHECK(a.stages == b.stages);
  CHECK(a.boundaries == b.boundaries);
  CHECK(a.ranks == b.ranks);
  CHECK(a.idle == b.idle);
  CHECK(a.predicted == b.predicted);
  CHECK(a.targets == b.targets);
  CHECK(a.provenance.space == b.provenance.space);
  CHECK(a.provenance.search_bound == b.provenance.search_bound);
}

/// The file with the first occurrence of `from` replaced.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Diagnostic first_error(const std::string& text) {
  const auto plan = read_plan(text, "plan.json");
  REQUIRE_FALSE(plan.has_value());
  return plan.error().front();
}

}  // namespace

TEST_CASE("attention made for the GPU's generation is written where the job runs it") {
  LaunchPlan plan = example_plan();
  for (auto& island : plan.islands) {
    island.device.compute.native_attention =
        cluster::NativeAttention{0.7, 0.6, 500, 600, "made up", 64, 60, 40, 128, 90};
  }
  const auto read_back = [&] {
    auto read = read_plan(write_plan(plan), "plan.json");
    if (!read) FAIL(render(read.error()));
    return *std::move(read);
  };
  CHECK_FALSE(read_back().islands.front().device.compute.native_attention);
  CHECK(write_plan(plan).find("native") == std::string::npos);
  plan.model.job.attention_kernel = model::AttentionKernel::kNative;
  check_equal(read_back(), plan);
}

TEST_CASE("figures of fused kernels are written where the job runs them") {
  LaunchPlan plan = example_plan();
  for (auto& island : plan.islands) {
    island.device.compute.fused_kernels = cluster::FusedKernels{0.7, 0.6, 0.9, "made up", 0.4};
    at(island.device.peak, static_cast<int>(DType::kFp4)) = FlopsPerSecond(9e15);
  }
  const auto check_written = [&] {
    auto read = read_plan(write_plan(plan), "plan.json");
    if (!read) FAIL(render(read.error()));
    check_equal(*read, plan);
  };
  CHECK(write_plan(plan).find("fused_kernels") == std::string::npos);
  plan.model.job.fused_kernels = true;
  check_written();
  // Products in 4 bits are theirs in any case.
  plan.model.job.fused_kernels = false;
  plan.model.job.precision = DType::kFp4;
  check_written();
}

TEST_CASE("what is written is read back") {
  LaunchPlan plan = example_plan();
  const std::string text = write_plan(plan);
  auto read = read_plan(text, "plan.json");
  if (!read) FAIL(render(read.error()));
  check_equal(*read, plan);
  CHECK(write_plan(*read) == text);
}

TEST_CASE("a mixture is written block by block and read back") {
  LaunchPlan plan = example_plan();
  const std::string alike = write_plan(plan);
  CHECK(alike.find("block_runs") == std::string::npos);
  cost::MemoryPolicy& policy = plan.stages[0].parts[0].strategy.policy;
  policy = cost::policy_of_runs(1, {{1, {3, cost::RecomputeMode::kFull}}, {2, {1, cost::RecomputeMode::kSelective}}});
  const std::string text = write_plan(plan);
  const auto read = read_plan(text, "plan.json");
  REQUIRE(read.has_value());
  check_equal(*read, plan);
  CHECK(first_error(edited(text, "\"mixed\"", "\"none\"")).code == "inconsistent");
  CHECK(first_error(edited(alike, "\"granularity\": \"none\"", "\"granularity\": \"mixed\"")).code == "inconsistent");
  CHECK(first_error(edited(text, "\"blocks\": 2", "\"blocks\": 0")).code == "out-of-range");
}

TEST_CASE("groups that ZeRO shards inside are written where there are any, and read back") {
  LaunchPlan plan = example_plan();
  CHECK(write_plan(plan).find("dp_replicate") == std::string::npos);
  plan.stages[0].parts[0].strategy.degrees.dp_replicate = 2;
  const std::string text = write_plan(plan);
  const auto read = read_plan(text, "plan.json");
  REQUIRE(read.has_value());
  check_equal(*read, plan);
  CHECK(first_error(edited(text, "\"dp_replicate\": 2", "\"dp_replicate\": 0")).code == "out-of-range");
}

TEST_CASE("a space that is not canonical JSON stays the text it was") {
  LaunchPlan plan = example_plan();
  plan.provenance.space = R"({ "a": 1 })";
  const auto read = read_plan(write_plan(plan), "plan.json");
  REQUIRE(read);
  CHECK(read->provenance.space == plan.provenance.space);
}

TEST_CASE("times are milliseconds with every nanosecond") {
  LaunchPlan plan = example_plan();
  plan.stages[0].parts[0].predicted.forward = Nanoseconds(1'234'567'890'123);
  plan.stages[0].parts[0].predicted.backward = Nanoseconds((std::int64_t{1} << 50) - 1);
  plan.predicted.iteration = Nanoseconds(987'654'321'012'345);
  const std::string text = write_plan(plan);
  CHECK(text.find("\"forward_ms\": 1234567.890123") != std::string::npos);
  const auto read = read_plan(text, "plan.json");
  REQUIRE(read);
  CHECK(read->stages == plan.stages);
  CHECK(read->predicted.iteration == plan.predicted.iteration);
}

TEST_CASE("ranks and transfers stand on one line each") {
  LaunchPlan plan = example_plan();
  const std::string text = write_plan(plan);
  CHECK(text.find(
            "\n    {\"rank\": 13, \"host\": \"b1\", \"local_rank\": 1, \"gpu\": 1, \"island\": 1, \"stage\": 1, "
            "\"part\": 0, \"replica\": 0, \"tp\": 1, \"cp\": 0, \"dp\": 1, \"ep\": 0, \"etp\": 1, \"edp\": 1},\n") !=
        std::string::npos);
  // Stage 0 gives each rank one sample (dp 4) and half of the sequence (tp 2). One sample at the cut is
  // 1024 positions x 512 values x 2 bytes = 1 MiB; rank 0's half goes to the two context ranges' tp pieces of 256.
  CHECK(text.find("        {\"src\": 0, \"dst\": 8, \"samples\": [0, 1], \"seq\": [0, 256], \"bytes\": 262144},\n") !=
        std::string::npos);
  CHECK(text.find("{\"host\": \"a1\", \"gpus\": [0, 1, 2, 3]}") != std::string::npos);
}

TEST_CASE("the identity is that of the body") {
  LaunchPlan plan = example_plan();
  static_cast<void>(write_plan(plan));
  const std::string id = plan.plan_id;
  CHECK(id == plan_digest(plan));
  SECTION("provenance does not count") {
    plan.provenance.states += 1;
    plan.provenance.note = "re-ranked";
    static_cast<void>(write_plan(plan));
    CHECK(plan.plan_id == id);
  }
  SECTION("everything else does") {
    plan.ranks[3].gpu = 7;
    static_cast<void>(write_plan(plan));
    CHECK(plan.plan_id != id);
  }
}

TEST_CASE("two runs give the same bytes") {
  LaunchPlan a = example_plan();
  LaunchPlan b = example_plan();
  CHECK(write_plan(a) == write_plan(b));
}

TEST_CASE("mistakes in a plan file are reported where they are") {
  LaunchPlan plan = example_plan();
  const std::string text = write_plan(plan);
  SECTION("another schema") {
    const auto error = first_error(edited(text, "launch_plan/1", "launch_plan/9"));
    CHECK(error.code == "unknown-schema");
    CHECK(error.where.line == 2);
  }
  SECTION("a key nobody knows") {
    CHECK(first_error(edited(text, "\"microbatch\"", "\"microbach\"")).message.find("microba") != std::string::npos);
  }
  SECTION("a rank out of order") {
    const auto error = first_error(edited(text, "{\"rank\": 13,", "{\"rank\": 14,"));
    CHECK(error.code == "wrong-identifier");
    CHECK(error.pointer == "/ranks/13/rank");
  }
  SECTION("a stage that is not there") {
    CHECK(first_error(edited(text, "\"stage\": 2,", "\"stage\": 3,")).pointer == "/ranks/16/stage");
  }
  SECTION("a transfer to nowhere") {
    CHECK(first_error(edited(text, "\"dst\": 8,", "\"dst\": 800,")).pointer == "/boundaries/0/transfers/0/dst");
  }
  SECTION("a range that runs backwards") {
    const auto error = first_error(edited(text, "\"seq\": [0, 256]", "\"seq\": [256, 0]"));
    CHECK(error.code == "wrong-range");
  }
  SECTION("blocks beyond the model") {
    CHECK(first_error(edited(text, "\"blocks\": [5, 8]", "\"blocks\": [5, 9]")).code == "wrong-range");
  }
  SECTION("the batch contradicts the pipelines") {
    CHECK(first_error(edited(text, "\"num_microbatches\": 8", "\"num_microbatches\": 7")).code == "inconsistent");
  }
  SECTION("a mistake in the embedded model points into the file") {
    const auto error = first_error(edited(text, "\"vocabulary\": 32000", "\"vocabulary\": -1"));
    const auto at = text.find("\"vocabulary\": 32000");
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    CHECK(error.where.line == line);
    CHECK(error.where.file == "plan.json");
  }
  SECTION("more GPUs than anyone has") {
    CHECK_FALSE(read_plan(edited(text, "\"tp\": 2", "\"tp\": 1048576"), "plan.json"));
  }
  SECTION("a runtime nobody knows") {
    const auto error = first_error(edited(text, "\"runtime\": \"generic\"", "\"runtime\": \"megaton\""));
    CHECK(error.code == "unknown-value");
    CHECK(error.pointer == "/execution/runtime");
  }
  SECTION("transfers that the runtime does not have") {
    const auto error = first_error(edited(text, "\"transfers\": \"overlapped\"", "\"transfers\": \"blocking\""));
    CHECK(error.code == "inconsistent");
    CHECK(error.pointer == "/execution/transfers");
  }
  SECTION("no JSON") { CHECK_FALSE(read_plan("{", "plan.json")); }
  SECTION("an array") { CHECK_FALSE(read_plan("[]", "plan.json")); }
  SECTION("nothing inside") { CHECK_FALSE(read_plan("{}", "plan.json")); }
}

TEST_CASE("comments inside the embedded model do not confuse the reader") {
  LaunchPlan plan = example_plan();
  const std::string text = edited(write_plan(plan), "\"vocabulary\":", "/* } */ // ]\n \"vocabulary\":");
  CHECK(read_plan(text, "plan.json").has_value());
}
