// What of a run counts as its traits.
#include "support/catch.hpp"
#include "tangram/discrepancy/discrepancy.hpp"

using namespace tangram;
using namespace tangram::discrepancy;

namespace {

model::Model four_blocks() {
  model::Model model;
  model.hidden = 512;
  model.types.resize(1);
  model.blocks.assign(4, 0);
  model.vocabulary = 1000;
  model.job.sequence_length = 1024;
  model.job.precision = DType::kBf16;
  return model;
}

cost::Degrees degrees(int tp, int dp) {
  cost::Degrees degrees;
  degrees.tp = tp;
  degrees.dp = dp;
  return degrees;
}

}  // namespace

TEST_CASE("degrees of unlike stages are geometric means over the GPUs", "[discrepancy]") {
  TraitsOfRun run(four_blocks(), "megatron");
  run.add("V100", degrees(8, 1), 4);
  run.add("A100", degrees(2, 4), 4);
  const Traits traits = run.of_pipelines(2, 16);
  CHECK(traits.tp == Approx(4));  // 8 GPUs with 8, 8 with 2
  CHECK(traits.cp == Approx(1));
  CHECK(traits.tokens == Approx(2048));  // 4 samples a replica, and 1
  CHECK(traits.gpus == 16);
  CHECK(traits.stages == 2);
  CHECK(traits.microbatches == 16);
  CHECK(traits.gpu_types == "A100+V100");
  CHECK(traits.precision == "bf16");
  CHECK(traits.software == "megatron");
  CHECK(traits.hidden == 512);
  CHECK(traits.blocks == 4);
  CHECK(traits.parameters == four_blocks().total_parameters());
  CHECK_FALSE(traits.experts);
}

TEST_CASE("a part without samples counts as one of a sample", "[discrepancy]") {
  TraitsOfRun run(four_blocks(), "megatron");
  run.add("A100", degrees(1, 2), 0);
  CHECK(run.of_pipelines(1, 1).tokens == Approx(1024));
}
