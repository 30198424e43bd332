// Encoders of measured plans: where their blocks and GPUs are, what they hold, and the published runs with encoders.
#include <fstream>
#include <iterator>
#include <map>

#include "encoder_price.hpp"
#include "slice_price.hpp"
#include "support/catch.hpp"
#include "tangram/accuracy/report.hpp"
#include "tangram/model/split.hpp"
#include "unit/accuracy/fixtures.hpp"

using namespace tangram;
using namespace tangram::accuracy;
using namespace tangram::accuracy::fixtures;

namespace {

/// Two H100 nodes: a language model of 8 layers at tp 4, dp 4, and an encoder of 4 layers that has 2 items of 64 tokens
/// a sample.
Measurement multimodal(Placement placement) {
  Measurement m = complete();
  m.gpus = {{"H100-80GB", 16, 8}};
  m.tp = 4;
  m.zero = 1;
  m.sequence_parallel = false;
  m.encoder = EncoderFacts{};
  m.encoder->placement = placement;
  m.encoder->hidden = 512;
  m.encoder->layers = 4;
  m.encoder->heads = 8;
  m.encoder->tokens_in = 64;
  m.encoder->items = 2;
  return m;
}

Prediction predicted(const Measurement& m) {
  auto prediction = predict(expressed(m), {});
  if (!prediction) FAIL(prediction.error().front().message);
  return *prediction;
}

/// In three phases: 2 stages of tp 4 and dp 2, encoder lanes of `tp`.
Measurement three_phases(int tp) {
  Measurement m = multimodal(Placement::kColocated);
  m.pp = 2;
  m.encoder->tp = tp;
  m.encoder->dp = 16 / tp;
  return m;
}

EncoderPrice priced(const Measurement& m) {
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.encoder);
  const auto price = price_encoder(*experiment.encoder, experiment.stages.front(), {});
  REQUIRE(price);
  return *price;
}

}  // namespace

TEST_CASE("a homogeneous encoder is in the first stage") {
  Measurement m = multimodal(Placement::kHomogeneous);
  m.pp = 2;
  const Experiment experiment = expressed(m);
  CHECK_FALSE(experiment.encoder);
  CHECK(experiment.model.block_count() == 12);
  REQUIRE(experiment.stages.size() == 2);
  CHECK(experiment.stages[0].chunks[0].last == 4 + 4);
  CHECK(experiment.stages[1].chunks[0].last == 12);
  CHECK(experiment.stages[0].chunks[0].embedding);
}

TEST_CASE("without pipelines, and laid out like the language model, colocated is homogeneous") {
  const Prediction homogeneous = predicted(multimodal(Placement::kHomogeneous));
  Measurement m = multimodal(Placement::kColocated);
  m.encoder->tp = 4;
  m.encoder->dp = 4;
  const Prediction colocated = predicted(m);
  CHECK(colocated.iteration_s == homogeneous.iteration_s);
  CHECK(colocated.peak_memory == homogeneous.peak_memory);
  CHECK(colocated.step_s == homogeneous.step_s);
}

TEST_CASE("a disjoint encoder is a stage on the first GPUs") {
  Measurement m = multimodal(Placement::kDisjoint);
  m.encoder->tp = 4;
  m.encoder->dp = 2;
  m.encoder->recompute = "full";
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.stages.size() == 2);
  const Stage& own = experiment.stages[0];
  CHECK(own.parts[0].degrees.tp == 4);
  CHECK(own.parts[0].degrees.dp == 2);
  CHECK(own.parts[0].samples == 4);  // items of 2 replicas of the language model
  CHECK(own.next_inside == false);
  CHECK(own.chunks[0].last == 4);
  CHECK(own.chunks[0].recomputed == 4);
  CHECK_FALSE(own.chunks[0].embedding);
  CHECK(experiment.stages[1].chunks[0].embedding);
  CHECK(experiment.stages[1].chunks[0].recomputed == 0);
}

TEST_CASE("what a disjoint encoder hands on are its tokens, as wide as the language model") {
  Measurement m = multimodal(Placement::kDisjoint);
  m.encoder->tp = 1;
  m.encoder->dp = 4;
  m.encoder->tokens_out = 16;
  m.gpus = {{"H100-80GB", 20, 4}};
  const Experiment experiment = expressed(m);
  CHECK(experiment.microbatch == 4);
  CHECK(passed_bytes(experiment, 4) == 2 * 16 * 1024 * 2);
  CHECK(passed_bytes(experiment, 5) == 1024 * 1024 * 2);
  CHECK(predicted(m).iteration_s > 0);
}

TEST_CASE("lanes on all GPUs share the items of a round") {
  // 64 samples an iteration, in 32 microbatches of 2: 128 items of the batch on 8 lanes of tp 2.
  const Experiment experiment = expressed(three_phases(2));
  REQUIRE(experiment.encoder);
  const SharedEncoder& encoder = *experiment.encoder;
  CHECK(experiment.model.block_count() == 8);
  CHECK(encoder.turns == cost::EncoderTurns::kThreePhases);
  CHECK(encoder.lanes == 8);
  CHECK(encoder.items == 16);
  CHECK(encoder.layout.zero1);
  CHECK(encoder.output_bytes == 64 * 1024 * 2);
  CHECK(encoder.handover.bytes == Bytes(128 * 64 * 1024 * 2));
  CHECK(encoder.handover.replicas == 2);
  // Each replica of the first stage keeps what was made for its 32 samples, and the gradients.
  CHECK(encoder.embeddings == Bytes(64 * 64 * 1024 * 2 * 2));
  CHECK(encoder.sync_link.bandwidth.value() == Approx(8 * 50e9));
}

TEST_CASE("each microbatch has its turn without pipelines") {
  Measurement m = multimodal(Placement::kColocated);
  m.encoder->tp = 2;
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.encoder);
  CHECK(experiment.encoder->turns == cost::EncoderTurns::kPerMicrobatch);
  CHECK(experiment.encoder->items == 1);  // a microbatch of 4 samples, 8 items on 8 lanes
  CHECK(turns_of(*experiment.encoder, experiment.stages[0].parts[0].shape.device, 16).rounds == 16);
}

TEST_CASE("layers between kept inputs are there together") {
  Measurement m = three_phases(2);
  m.encoder->recompute = "full";
  const EncoderPrice each = priced(m);
  m.encoder->recompute_layers = 4;
  const EncoderPrice all = priced(m);
  // Three inputs less of 16 items x 64 tokens, hidden 512, 2 bytes.
  CHECK(each.beside - all.beside == Approx(3 * 16 * 64 * 512 * 2));
  CHECK(all.alone > each.alone);
  m.encoder->recompute = "";
  CHECK(priced(m).beside > each.beside);
  CHECK(priced(m).passes.backward < each.passes.backward);
}

TEST_CASE("an offloaded encoder leaves the language model its weights and gradients, and takes time") {
  Measurement m = three_phases(2);
  const Experiment here = expressed(m);
  const EncoderPrice kept = priced(m);
  m.encoder->offloaded = true;
  const Experiment away = expressed(m);
  const double parameters = static_cast<double>(here.encoder->model.total_parameters()) / 2;
  // bf16 weights, and main gradients in fp32.
  CHECK(kept.beside - priced(m).beside == Approx(parameters * (2 + 4)));
  CHECK(kept.alone == priced(m).alone);
  const cluster::GpuType& device = here.stages[0].parts[0].shape.device;
  const double seconds = parameters * 2 / device.pcie.bandwidth.value();
  const auto gather = [&](const Experiment& e) { return to_seconds(turns_of(*e.encoder, device, 32).gather); };
  CHECK(gather(away) - gather(here) == Approx(seconds).epsilon(1e-3));
}

TEST_CASE("printed facts of kernels stand before those of the software") {
  Measurement m = three_phases(2);
  m.framework = "Megatron-LM";
  CHECK(expressed(m).model.job.fused_kernels);
  m.kernels = {true, false, true, false};
  m.encoder->kernels = {std::nullopt, true, false, std::nullopt};
  const Experiment experiment = expressed(m);
  CHECK(experiment.model.job.dropout);
  CHECK_FALSE(experiment.model.job.fused_kernels);
  CHECK(experiment.model.job.fused_loss == model::FusedLoss::kTransformerEngine);
  CHECK_FALSE(experiment.model.job.fused_accumulation);
  CHECK(experiment.encoder->model.job.dropout);
  CHECK(experiment.encoder->model.job.fused_kernels);
  CHECK(experiment.encoder->model.job.fused_loss == model::FusedLoss::kNone);
}

TEST_CASE("what cannot be said of an encoder") {
  const auto changed = [](Placement placement, auto change) {
    Measurement m = multimodal(placement);
    change(m);
    return refusal(m);
  };
  using enum Placement;
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->layers = 0; }) ==
        "the dimensions of the encoder are not printed");
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->tokens_in = 0; }) ==
        "the tokens of the encoder are not printed");
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->recompute = "selective"; }) ==
        "a selectively recomputed encoder");
  CHECK(changed(kColocated, [](Measurement& m) { m.model.hidden = 0; }) ==
        "the dimensions of the language model are not printed");
  CHECK(changed(kHomogeneous, [](Measurement& m) { m.encoder->tp = 2; }) ==
        "a homogeneous encoder has other degrees than the language model");
  CHECK(changed(kHomogeneous, [](Measurement& m) { m.encoder->sequence_parallel = true; }) ==
        "a homogeneous encoder has other degrees than the language model");
  CHECK(changed(kHomogeneous, [](Measurement& m) { m.encoder->recompute = "full"; }) ==
        "a homogeneous encoder is recomputed otherwise than the language model");
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->tp = 3; }) ==
        "the encoder's lanes are not the 16 GPUs of the language model");
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->tp = 1, m.encoder->dp = 8; }) ==
        "the encoder's lanes are not the 16 GPUs of the language model");
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->tp = 1, m.encoder->items = 1; }) ==
        "4 items of a round are no multiple of 16 lanes");
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->tp = 2, m.zero = 3; }) ==
        "an encoder with degrees of its own under ZeRO-2 or ZeRO-3");
  CHECK(changed(kColocated, [](Measurement& m) { m.encoder->tp = 2, m.encoder->offloaded = true; }) ==
        "the encoder was offloaded, but not beside a pipeline");
  CHECK(changed(kColocated, [](Measurement& m) { m.pp = 2, m.virtual_stages = 2; }) ==
        "an encoder with degrees of its own beside virtual stages");
  CHECK(changed(kDisjoint, [](Measurement&) {}) == "the degrees of the encoder are not printed");
  CHECK(changed(kDisjoint, [](Measurement& m) { m.encoder->tp = 8, m.encoder->dp = 2; }) ==
        "the encoder leaves the language model no GPUs");
  CHECK(changed(kDisjoint, [](Measurement& m) { m.encoder->tp = 1, m.encoder->dp = 8; }) ==
        "4 items of a microbatch are no multiple of the encoder's dp 8");
}

namespace {

/// Predictions of configs/measurements/multimodal.json, by the end of their names.
std::map<std::string, Line> published_runs() {
  std::ifstream in(TANGRAM_MULTIMODAL_RUNS);
  REQUIRE(in);
  auto rows = read_measurements(std::string(std::istreambuf_iterator<char>(in), {}), "multimodal.json");
  REQUIRE(rows);
  std::map<std::string, Line> lines;
  for (Line& line : judge(std::move(*rows), cluster::catalogue(), {})) {
    REQUIRE(line.reason.empty());
    lines.emplace(line.measurement.id.substr(std::string("mimo_").size()), line);
  }
  return lines;
}

}  // namespace

TEST_CASE("a 3B encoder beside a 70B model: the encoder's tp, and two samples a microbatch") {
  const auto runs = published_runs();
  const auto seconds = [&](const char* run) { return runs.at(run).prediction.iteration_s; };
  const auto [least, most] =
      std::minmax({seconds("3b70b_enc_tp8"), seconds("3b70b_enc_tp4"), seconds("3b70b_enc_tp2")});
  CHECK(most / least - 1 < 0.02);  // measured: 0.8 %
  for (const char* run : {"3b70b_enc_tp8", "3b70b_enc_tp4", "3b70b_enc_tp2", "3b70b_mbs2", "3b32b"}) {
    INFO(run);
    CHECK(std::abs(runs.at(run).time_error()) < 0.05);
  }
  CHECK(seconds("3b70b_mbs2") / seconds("3b70b_enc_tp4") == Approx(1.199).epsilon(0.04));
}

TEST_CASE("peak memory of runs with encoders") {
  const auto runs = published_runs();
  const auto bytes = [&](const char* run) { return runs.at(run).predicted_memory(); };
  CHECK(bytes("3b70b_enc_tp4") - bytes("3b70b_enc_tp8") == Approx(1.54e9).epsilon(0.05));
  CHECK(bytes("3b70b_enc_tp2") - bytes("3b70b_enc_tp4") == Approx(3.12e9).epsilon(0.05));
  CHECK(bytes("3b70b_mbs2") - bytes("3b70b_enc_tp4") == Approx(23.05e9).epsilon(0.05));
  for (const auto& [name, line] : runs) {
    INFO(name);
    if (line.measurement.quality == "A") CHECK((!line.weighed() || std::abs(line.memory_error()) < 0.10));
    CHECK((!line.measurement.out_of_memory || line.prediction.usable_share > 1));
  }
}

TEST_CASE("a 1B encoder beside a 7B model without pipelines: homogeneous and colocated") {
  const auto runs = published_runs();
  const double homogeneous = runs.at("1b7b_homogeneous").prediction.iteration_s;
  CHECK(runs.at("1b7b_colocated").prediction.iteration_s == Approx(homogeneous).epsilon(0.02));
}

namespace {

/// A GPT of 70B in front of which an encoder of `layers` layers sees 1,024 tokens an image, as Megatron-LM's MIMO runs
/// it: one sample a microbatch, sequence parallelism, the encoder recomputed.
Measurement beside_70b(Placement placement, std::int64_t hidden, int heads, std::int64_t images) {
  Measurement m;
  m.framework = "Megatron-LM";
  m.gpus = {{"H100-80GB", 64, 8}};
  m.model.name = "GPT";
  m.model.hidden = 8192;
  m.model.layers = 80;
  m.model.heads = 64;
  m.model.vocabulary = 128000;
  m.sequence = 8192;
  m.microbatch = 1;
  m.zero = 1;
  m.sequence_parallel = true;
  m.precision = m.gradient_dtype = "bf16";
  m.overlap = {"tp_comm"};
  m.kernels = {true, std::nullopt, true, std::nullopt};
  m.encoder = EncoderFacts{};
  m.encoder->placement = placement;
  m.encoder->hidden = hidden;
  m.encoder->layers = 48;
  m.encoder->heads = heads;
  m.encoder->tokens_in = 1024;
  m.encoder->items = images;
  return m;
}

/// 3B + 70B, three quarters of the tokens of images, 128 samples on 64 GPUs at tp 8.
Measurement mostly_images(Placement placement, int stages, int first) {
  Measurement m = beside_70b(placement, 2304, 32, 6);
  m.global_batch = 128;
  m.tp = 8;
  m.pp = stages;
  const int others = (80 - first) / (stages - 1);
  m.layers_per_stage.assign(static_cast<std::size_t>(stages), others);
  m.layers_per_stage.front() = 80 - others * (stages - 1);
  return m;
}

}  // namespace

TEST_CASE("with many images homogeneous wants a short first stage, and colocated beats it with fewer stages") {
  double best = 1e9;
  int first_of_best = 0;
  int even_of_best = 0;
  for (const int stages : {2, 4, 8}) {
    for (int first = 1; first <= 80 / stages; ++first) {
      const Measurement m = mostly_images(Placement::kHomogeneous, stages, first);
      const Prediction prediction = predicted(m);
      if (prediction.usable_share > 1 || prediction.iteration_s >= best) continue;
      best = prediction.iteration_s;
      first_of_best = m.layers_per_stage.front();
      even_of_best = 80 / stages;
    }
  }
  CHECK(first_of_best < even_of_best);
  Measurement m = mostly_images(Placement::kColocated, 2, 40);
  m.encoder->tp = 4;
  m.encoder->recompute = "full";
  const Prediction colocated = predicted(m);
  CHECK(colocated.usable_share <= 1);
  CHECK(colocated.iteration_s < best);
  CHECK(predicted(mostly_images(Placement::kHomogeneous, 2, 40)).iteration_s > colocated.iteration_s);
}

TEST_CASE("behind an encoder of its own a language model in equal stages hardly fits, with 14 layers first it does") {
  // 6B + 70B on 72 GPUs: the harness left equal stages because they ran out of memory. Its other peaks are predicted 1
  // to 5 % too low.
  Measurement m = beside_70b(Placement::kDisjoint, 3072, 24, 4);
  m.gpus = {{"H100-80GB", 72, 8}};
  m.global_batch = 288;
  m.tp = m.pp = 4;
  m.encoder->tp = 1;
  m.encoder->dp = 8;
  m.encoder->recompute = "full";
  m.layers_per_stage = {20, 20, 20, 20};
  CHECK(predicted(m).usable_share > 0.95);
  m.layers_per_stage = {14, 22, 22, 22};
  CHECK(predicted(m).usable_share < 0.9);
}
