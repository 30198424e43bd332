// Samples that are packed of sequences: how long these are, and what attention makes of them.
#include "tangram/model/packing.hpp"

#include <cmath>
#include <numeric>
#include <random>

#include "files.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

Packing lognormal_lengths(double mean, double p95) { return {mean, p95, {}}; }
Packing counted_lengths(std::vector<LengthCount> lengths) { return {0, 0, std::move(lengths)}; }

std::string packed_model_text(const std::string& training) {
  return "schema: tangram.model/1\nname: test\narchitecture: {vocabulary: 100, hidden: 64, layers: 4, heads: 4, "
         "ffn_hidden: 128}\ntraining: {sequence_length: 4096, global_batch_samples: 8" +
         training + "}\n";
}

Model read_packed(const std::string& training) { return valid(read_model(packed_model_text(training), "test.yaml")); }

std::string refused_packing(const std::string& training) {
  const auto model = read_model(packed_model_text(training), "test.yaml");
  REQUIRE_FALSE(model);
  return model.error().front().code;
}

/// Lengths that fill a sample, the last one as long as there is room.
std::vector<double> packed_sample(const Packing& packing, double sample, std::mt19937_64& random) {
  std::vector<double> weights;
  for (const LengthCount& length : packing.lengths) weights.push_back(static_cast<double>(length.sequences));
  std::discrete_distribution<std::size_t> any(weights.begin(), weights.end());
  std::vector<double> lengths;
  for (double room = sample; room > 0; room -= lengths.back()) {
    lengths.push_back(std::min({room, sample, static_cast<double>(packing.lengths[any(random)].tokens)}));
  }
  return lengths;
}

}  // namespace

TEST_CASE("packing: moments of lengths that are counted, and cut to a sample") {
  const Packing packing = counted_lengths({{100, 3}, {1000, 1}});
  CHECK(length_moment(packing, 1, 4096) == Approx(325));
  CHECK(length_moment(packing, 2, 4096) == Approx((3 * 1e4 + 1e6) / 4));
  CHECK(length_moment(packing, 1, 400) == Approx(175));
  CHECK(attended_length(packing, 4096) == Approx((3 * 1e4 + 1e6) / 4 / 325));
  CHECK(attended_length(counted_lengths({{9000, 5}}), 4096) == 4096);
}

TEST_CASE("packing: moments of lognormal lengths are those of draws") {
  const double mean = GENERATE(200.0, 1500.0);
  const double ratio = GENERATE(1.2, 2.0, 3.5, 8.0);
  const Packing packing = lognormal_lengths(mean, mean * ratio);
  const double half = 1.6448536269514722 * 1.6448536269514722 / 2;
  const double deviation = 1.6448536269514722 - std::sqrt(std::max(0.0, 2 * half - 2 * std::log(ratio)));
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(std::log(mean) - deviation * deviation / 2, deviation);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 400'000;
  for (int i = 0; i < kDraws; ++i) {
    const double length = std::min(4096.0, draw(random));
    sum += length;
    squares += length * length;
  }
  CAPTURE(mean, ratio);
  CHECK(length_moment(packing, 1, 4096) == Approx(sum / kDraws).epsilon(0.01));
  CHECK(length_moment(packing, 2, 4096) == Approx(squares / kDraws).epsilon(0.02));
}

TEST_CASE("packing: the length that a token is in, and how samples vary, are those of packed samples") {
  const Packing packing = GENERATE(counted_lengths({{64, 60}, {256, 30}, {1024, 10}}),
                                   counted_lengths({{500, 1}, {700, 1}}), counted_lengths({{32, 90}, {2048, 3}}));
  constexpr std::int64_t kSample = 32'768;
  std::mt19937_64 random(11);
  double sum = 0;
  double squares = 0;
  constexpr int kSamples = 4'000;
  for (int i = 0; i < kSamples; ++i) {
    const std::vector<double> lengths = packed_sample(packing, kSample, random);
    const double pairs = std::inner_product(lengths.begin(), lengths.end(), lengths.begin(), 0.0);
    sum += pairs;
    squares += pairs * pairs;
  }
  const double mean = sum / kSamples;
  CHECK(attended_length(packing, kSample) == Approx(mean / kSample).epsilon(0.03));
  const double variation = std::sqrt(squares / kSamples - mean * mean) / mean;
  CHECK(packing_variation(packing, kSample) == Approx(variation).epsilon(0.1));
}

TEST_CASE("packing: sequences of one length, and a sample of one sequence, do not vary") {
  CHECK(packing_variation(lognormal_lengths(512, 0), 4096) == 0);
  CHECK(packing_variation(counted_lengths({{8192, 4}}), 4096) == Approx(0).margin(1e-9));
}

TEST_CASE("packing: a sample has the FLOPs of its sequences") {
  const Model packed = read_packed(", packing: {mean_length: 512}");
  JobOverrides shorter;
  shorter.sequence_length = 512;
  shorter.global_batch = 64;
  const Model alone = valid(read_model(packed_model_text(""), "test.yaml", shorter));
  CHECK(model_flops_per_iteration(packed).value() == Approx(model_flops_per_iteration(alone).value()));
  CHECK(model_flops_per_iteration(read_packed("")).value() > 1.2 * model_flops_per_iteration(packed).value());
}

TEST_CASE("packing: a model is written with it, and read as it was") {
  for (const char* training : {", packing: {mean_length: 700, p95_length: 2100.5}",
                               ", packing: {lengths: [{tokens: 512, sequences: 90}, {tokens: 4096, sequences: 10}]}"}) {
    const Model model = read_packed(training);
    CHECK(model.types.front().attention.packed_length > 512);
    const Model again = valid(read_model(write_model(model), "test.yaml"));
    CHECK(again.job == model.job);
    CHECK(again.types == model.types);
    CHECK(again.digest == model.digest);
  }
  CHECK(read_packed("").types.front().attention.packed_length == 0);
}

TEST_CASE("packing: encoders read whole items") {
  const std::string text =
      "schema: tangram.model/1\nname: test\narchitecture: {vocabulary: 100, hidden: 64, layers: 4, heads: 4, "
      "ffn_hidden: 128, encoders: [{name: vision, hidden: 64, layers: 2, heads: 4, ffn_hidden: 128, tokens_in: 256}]}\n"
      "training: {sequence_length: 4096, global_batch_samples: 8, packing: {mean_length: 1024}}\n";
  const Model model = valid(read_model(text, "test.yaml"));
  CHECK(model.block(0).attention.packed_length == 0);
  CHECK(model.block(model.block_count() - 1).attention.packed_length == 1024);
}

TEST_CASE("packing: what says nothing, or two things, is refused") {
  CHECK(refused_packing(", packing: {}") == "missing-key");
  CHECK(refused_packing(", packing: {mean_length: 0}") == "out-of-range");
  CHECK(refused_packing(", packing: {mean_length: 700, p95_length: 600}") == "inconsistent-value");
  CHECK(refused_packing(", packing: {lengths: [{tokens: 512, sequences: 1}], mean_length: 600}") == "conflicting-keys");
  CHECK(refused_packing(", packing: {lengths: [{tokens: 512}]}") == "missing-key");
  CHECK_FALSE(read_model(packed_model_text(", packing: {lengths: []}"), "test.yaml"));
}
