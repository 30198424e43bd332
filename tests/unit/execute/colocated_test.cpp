// Verifications of plans with colocated encoders: turns, layouts that fan in and out, what is frozen, samples without
// items, and every planted mistake found by its name.
#include <algorithm>

#include "unit/execute/tiny_colocated.hpp"
#include "unit/execute/verified.hpp"

using namespace tangram;
using namespace tangram::execute;
using namespace tangram::execute::tiny;
using cost::RecomputeMode;

namespace {

EncoderSpec with_tp(int tp) {
  EncoderSpec encoder;
  encoder.layout.tp = tp;
  encoder.layout.sequence_parallel = tp > 1;
  encoder.layout.zero1 = true;
  return encoder;
}

/// 8 ranks: one stage of tp2 dp4, or two of tp2 dp2; 4 microbatches.
plan::LaunchPlan on_eight(const std::vector<EncoderSpec>& encoders, bool phases, std::int64_t microbatch = 4) {
  const PartSpec wide{{2, 1, 4, 1, 1, true}, microbatch};
  const PartSpec narrow{{2, 1, 2, 1, 1, true}, microbatch};
  if (phases) return make_colocated(encoders, 4, {{microbatch, 4, {{2, {narrow}}, {4, {narrow}}}}});
  return make_colocated(encoders, 4, {{microbatch, 4, {{4, {wide}}}}});
}

/// One encoder trained and one frozen, both without items in a third of the samples.
plan::LaunchPlan with_mistakes(bool phases) {
  EncoderSpec encoder = with_tp(1);
  encoder.some_without = true;
  EncoderSpec frozen = with_tp(2);
  frozen.trained = false;
  frozen.some_without = true;
  return on_eight({encoder, frozen}, phases, 8);
}

bool has_code(const Report& report, std::string_view code) {
  return std::ranges::any_of(report.findings, [&](const Finding& f) { return f.code == code; });
}

}  // namespace

TEST_CASE("colocated encoders that fan in, out, or neither compute what one process computes, in turns and in phases") {
  for (const bool phases : {false, true}) {
    for (const int tp : {1, 2, 4, 8}) {
      if (phases && tp == 8) continue;  // a stage has 4
      const Report report = check_good(on_eight({with_tp(tp)}, phases));
      int ranks = 0;
      for (const StageReport& stage : report.stages) ranks += stage.ranks;
      CHECK(report.encoders.front().lanes == ranks / tp);
    }
  }
}

TEST_CASE("two encoders with layouts of their own compute what one process computes") {
  for (const bool phases : {false, true}) check_good(on_eight({with_tp(1), with_tp(4)}, phases));
}

TEST_CASE("frozen encoders stay as they are to the last bit, and connectors behind them learn") {
  for (const bool phases : {false, true}) {
    for (const bool trained : {false, true}) {
      for (const bool connected : {false, true}) {
        EncoderSpec encoder = with_tp(2);
        encoder.trained = trained;
        encoder.trained_connector = connected;
        const Report report = check_good(on_eight({encoder}, phases));
        CHECK(report.encoders.front().trained == (trained || connected));
        CHECK((report.encoders.front().held > 0) == (trained || connected));
      }
    }
  }
}

TEST_CASE("frozen modules of a pipeline stay as they are to the last bit, whatever ZeRO does") {
  for (const bool trained : {false, true}) {
    for (const int zero : {0, 1, 2, 3}) {
      EncoderSpec encoder;
      encoder.trained = trained;
      model::Model model = make_multimodal({encoder}, 4, !trained);
      model.job.global_batch = 0;  // make_plan adds what pipelines take
      const PartSpec part{{2, 1, 2, 1, 1, true}, 4, {zero, RecomputeMode::kNone, 0}};
      const Report report = check_good(make_plan(std::move(model), {{4, 3, {{2, {part}}, {7, {part}}}}}));
      CHECK(report.encoders.empty());
    }
  }
}

TEST_CASE("three phases hold activations of a lane's share of the batch, turns those of a microbatch") {
  // 16 samples on 4 lanes; microbatches of 4 samples on 4 lanes.
  CHECK(check_good(on_eight({with_tp(2)}, true)).encoders.front().held == 4);
  CHECK(check_good(on_eight({with_tp(2)}, false)).encoders.front().held == 1);
}

TEST_CASE("encoders recompute as they are told, without sequence parallelism too") {
  for (const auto recompute : {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
    EncoderSpec encoder = with_tp(4);
    encoder.layout.sequence_parallel = false;
    encoder.layout.zero1 = false;
    encoder.layout.recompute = recompute;
    check_good(on_eight({encoder}, true));
  }
}

TEST_CASE("samples and whole microbatches without items are left alone") {
  for (const bool phases : {false, true}) check_good(with_mistakes(phases));
}

TEST_CASE("pipelines of colocated encoders share their weights") {
  const PartSpec part{{2, 1, 1, 1, 1, false}, 2};
  const PipelineSpec pipeline{2, 3, {{2, {part}}, {4, {part}}}};
  check_good(make_colocated({with_tp(1), with_tp(2)}, 4, {pipeline, pipeline}));
}

TEST_CASE("every mistake with colocated encoders is found by its name") {
  for (const bool phases : {false, true}) {
    const plan::LaunchPlan plan = with_mistakes(phases);
    for (const FaultName& fault : fault_names()) {
      if (fault.fault < Fault::kEncoderScale) continue;
      VerifyOptions options;
      options.fault = fault.fault;
      const auto report = verify(plan, options);
      INFO(fault.name << (phases ? ", phases" : ", turns"));
      // One stage has no other whose gradients could be given back; 4 replicas read 2 samples each, one of which may be
      // without items.
      const bool acts = phases || (fault.fault != Fault::kWrongStage && fault.fault != Fault::kReversedEmbeddings &&
                                   fault.fault != Fault::kReversedGradients);
      CHECK(report.has_value() == acts);
      if (!report) continue;
      INFO(listing(*report));
      CHECK(has_code(*report, fault.code));
    }
  }
}

TEST_CASE("lanes that a stage does not hold, and turns of several stages, are refused before anything runs") {
  plan::LaunchPlan plan = on_eight({with_tp(2)}, true);
  plan.colocated->encoders.front().layout.tp = 3;
  CHECK(has_code(verified(plan), "encoder-lanes"));
  plan = on_eight({with_tp(2)}, true);
  plan.colocated->turns = cost::EncoderTurns::kPerMicrobatch;
  CHECK(has_code(verified(plan), "encoder-turns"));
}
