// Damaged datasets: whatever stands in one, it is read and judged, or refused at a place of it.
#include <array>
#include <cctype>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "tangram/accuracy/report.hpp"
#include "tangram/cluster/fleet.hpp"

using namespace tangram;
using namespace tangram::accuracy;

namespace {

std::string dataset(const std::string& file) {
  std::ifstream in(std::string(TANGRAM_SOURCE_DIR) + "/" + file);
  REQUIRE(in);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Numbers that a reader takes for most keys.
constexpr std::array kNumbers = {"0",  "1",  "2",   "3",    "4",     "5",       "7",         "8",         "12",
                                 "16", "26", "256", "1024", "65536", "1000000", "999999999", "1000000000"};

/// What people, programs and fate put where a value should stand.
constexpr std::array kValues = {"-1",    "0.5",      "1e300",       "1e400",    "1e-300",        "null",
                                "true",  "\"\"",     "[]",          "{}",       "[0]",           "[1, 1]",
                                "[[2]]", "[{}]",     "\"GB300\"",   "[[{}]]",   "[26]",          "[2, 2]",
                                "[[4]]", "\"fp16\"", "\"\\u0000\"", "\"full\"", "\"8x200 Gb/s\""};

/// Keys that the dataset may lack, so that values come together that no publication has.
constexpr std::array kKeys = {"vpp",
                              "cp",
                              "ep",
                              "zero",
                              "model_parallel",
                              "stage_gpus",
                              "stage_tp",
                              "fsdp",
                              "mbs_local",
                              "grad_accum",
                              "stage_num_ops",
                              "act_offload",
                              "ffn",
                              "kv_heads",
                              "params_b",
                              "interconnect",
                              "notes",
                              "variant",
                              "recompute",
                              "precision",
                              "heads",
                              "layers",
                              "hidden",
                              "vocab",
                              "gpus",
                              "model",
                              "dp",
                              "stage_replicas",
                              "layers_per_stage",
                              "stage_recomputed_ops",
                              "partition_30_units"};

class Damage {
 public:
  explicit Damage(std::uint32_t seed) : random_(seed) {}

  std::string operator()(std::string text) {
    for (std::size_t times = 1 + below(3); times > 0; --times) hurt(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  void hurt(std::string& text) {
    switch (below(16)) {
      case 0: text[below(text.size())] = static_cast<char>(below(256)); break;
      case 1: text.erase(below(text.size()), 1 + below(8)); break;
      case 2:
      case 3: add_key(text); break;
      default: replace_value(text); break;
    }
  }

  /// Before some member of an object; a key that is there already makes a duplicate, which is refused.
  void add_key(std::string& text) {
    const std::size_t brace = text.find('{', below(text.size()));
    if (brace == std::string::npos) return;
    text.insert(brace + 1, std::string(" \"") + kKeys[below(kKeys.size())] + "\": " + value() + ",");
  }

  /// What follows some colon, up to the next comma or bracket.
  void replace_value(std::string& text) {
    const std::size_t colon = text.find(':', below(text.size()));
    if (colon == std::string::npos) return;
    const std::size_t end = text.find_first_of(",]}", colon);
    if (end == std::string::npos) return;
    const bool number = std::isdigit(static_cast<unsigned char>(text[end - 1])) != 0;
    text.replace(colon + 1, end - colon - 1, number && below(8) > 0 ? kNumbers[below(kNumbers.size())] : value());
  }

  const char* value() { return below(2) == 0 ? kNumbers[below(kNumbers.size())] : kValues[below(kValues.size())]; }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("damaged datasets are judged or refused") {
  const std::string text = dataset("tests/cli/inputs/measurements.json");
  int read = 0, predicted = 0;
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    auto rows = read_measurements(Damage(seed)(text), "damaged.json");
    if (!rows) {
      REQUIRE_FALSE(rows.error().empty());
      CHECK(rows.error().front().where.line > 0);
      continue;
    }
    ++read;
    const auto lines = judge(std::move(*rows), cluster::catalogue(), {});
    for (const Line& line : lines) {
      if (!line.reason.empty()) continue;
      ++predicted;
      CHECK(line.prediction.iteration_s > 0);
      CHECK(line.prediction.peak_memory > 0);
    }
    CHECK(summarize(lines).empty() == lines.empty());
  }
  // The damage is of both kinds.
  CHECK(read > 400);
  CHECK(read < 1900);
  CHECK(predicted > 1000);
}

TEST_CASE("damaged datasets with encoders are judged or refused") {
  const std::string text = dataset("configs/measurements/multimodal.json");
  int read = 0, predicted = 0;
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    INFO("seed " << seed);
    auto rows = read_measurements(Damage(seed)(text), "damaged.json");
    if (!rows) {
      CHECK(rows.error().front().where.line > 0);
      continue;
    }
    ++read;
    for (const Line& line : judge(std::move(*rows), cluster::catalogue(), {})) {
      if (!line.reason.empty()) continue;
      ++predicted;
      CHECK(line.prediction.iteration_s > 0);
      CHECK(line.prediction.peak_memory > 0);
    }
  }
  CHECK(read > 100);
  CHECK(predicted > 1000);
}
