// Statements about every plan with colocated encoders: it computes what one process computes, and a mistake in it is
// found.
#include <algorithm>
#include <map>
#include <string_view>

#include "property/execute/computes.hpp"
#include "support/property.hpp"
#include "unit/execute/tiny_colocated.hpp"
#include "unit/execute/verified.hpp"

using namespace tangram;
using namespace tangram::execute;
using namespace tangram::execute::tiny;

namespace {

int number(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

bool yes() { return number(0, 1) == 1; }

/// 1, 2 or 4, no more than `most`.
int power(int most) {
  const int all[] = {1, 2, 4};
  return std::min(all[number(0, 2)], most);
}

/// `gpus`: of every stage.
EncoderSpec random_encoder(int gpus) {
  EncoderSpec encoder;
  encoder.layers = number(1, 4);
  encoder.trained = yes();
  encoder.connector = yes();
  encoder.trained_connector = encoder.connector && yes();
  encoder.some_without = yes();
  cost::EncoderLayout& layout = encoder.layout;
  layout.tp = power(gpus);
  layout.sequence_parallel = layout.tp > 1 && yes();
  layout.zero1 = yes();
  const cost::RecomputeMode modes[] = {cost::RecomputeMode::kNone, cost::RecomputeMode::kSelective,
                                       cost::RecomputeMode::kFull};
  layout.recompute = modes[number(0, 2)];
  return encoder;
}

PartSpec random_replicas(int gpus, int samples) {
  PartSpec part;
  part.samples = samples;
  cost::Degrees& d = part.degrees;
  d.tp = power(gpus);
  d.cp = gpus / d.tp > 1 && yes() ? 2 : 1;
  d.dp = gpus / (d.tp * d.cp);
  if (d.dp > samples) d = {gpus, 1, 1, 1, 1, false};
  d.sequence_parallel = d.tp > 1 && yes();
  part.policy.zero = number(0, 3);
  return part;
}

plan::LaunchPlan random_colocated_plan() {
  const int stages = number(1, 3);
  const int gpus = 1 << number(0, 2);
  const int layers = stages + number(0, 2);
  PipelineSpec pipeline;
  pipeline.microbatch = number(1, 5);
  pipeline.microbatches = number(1, 5);
  if (pipeline.microbatches > 1 && yes()) pipeline.missing = number(0, static_cast<int>(pipeline.microbatch) - 1);
  for (int s = 0; s < stages; ++s) {
    const int last = s + 1 == stages ? layers : s + 1;
    pipeline.stages.push_back({last, {random_replicas(gpus, static_cast<int>(pipeline.microbatch))}, 0});
  }
  std::vector<EncoderSpec> encoders;
  for (int e = number(1, 2); e > 0; --e) encoders.push_back(random_encoder(gpus));
  if (encoders.size() > 1) encoders.front().connector = true;  // two alike in a row, with nothing between, are one
  std::vector<PipelineSpec> pipelines(static_cast<std::size_t>(number(1, 2)), pipeline);
  return make_colocated(encoders, layers, pipelines);
}

}  // namespace

TEST_CASE("three hundred plans with colocated encoders compute what one process computes") {
  testing::holds(300, [] { computes_as_one_process(random_colocated_plan()); });
}

TEST_CASE("every mistake that a plan with colocated encoders can take is found in it, under the mistake's name") {
  std::map<std::string_view, int> acted;
  testing::holds(100, [&acted] {
    const plan::LaunchPlan plan = random_colocated_plan();
    for (const FaultName& fault : fault_names()) {
      if (fault.fault < Fault::kEncoderScale) continue;
      VerifyOptions options;
      options.fault = fault.fault;
      const auto report = verify(plan, options);
      if (!report) continue;  // nothing to act on
      ++acted[fault.name];
      RC_LOG() << fault.name << "\n" << listing(*report);
      RC_ASSERT(std::ranges::any_of(report->findings, [&](const Finding& f) { return f.code == fault.code; }));
    }
  });
  for (const FaultName& fault : fault_names()) {
    if (fault.fault >= Fault::kEncoderScale) CHECK(acted[fault.name] >= testing::enough(10));
  }
}
