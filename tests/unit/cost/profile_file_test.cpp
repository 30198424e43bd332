// Files of tangram.profile/1: the shipped ones, what is written of them, and tests/data/profile/bad with the exact text
// each is refused with.
#include "tangram/cost/profile_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::cost {
namespace {

const std::string kRoot = std::string(TANGRAM_SOURCE_DIR) + "/";

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::filesystem::path> json_files(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + folder)) {
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Profile valid(const std::string& text, const std::string& file) {
  auto profile = read_profile(text, file, cluster::catalogue());
  if (!profile) FAIL(render(profile.error()));
  return std::move(*profile);
}

TEST_CASE("bad profiles: every mistake has its place, its text and its hint", "[golden]") {
  const auto files = json_files("tests/data/profile/bad");
  CHECK(files.size() >= 20);
  for (const std::filesystem::path& path : files) {
    INFO(path.string());
    const auto profile = read_profile(content(path), path.filename(), cluster::catalogue());
    if (profile) {
      FAIL_CHECK("accepted");
      continue;
    }
    const std::string text = render(profile.error());
    CHECK(text == test::golden(path.string() + ".expected", text));
  }
}

TEST_CASE("a profile says what its file says") {
  const Profile profile = valid(content(kRoot + "tests/data/profile/ok.json"), "ok.json");
  CHECK(profile.device.name == "A100-40GB-SXM");
  CHECK(profile.source == "made up");
  CHECK(profile.date == "2026-01-31");
  CHECK_FALSE(profile.includes_tp_communication);
  REQUIRE(profile.units.size() == 2);
  const ProfileUnit& block = profile.units.front();
  CHECK(block.kind == ProfileKind::kBlock);
  CHECK(block.block.attention.head_dim == 128);  // 4096 / 32
  CHECK(block.block.attention.kv_heads == 32);
  CHECK(block.block.tokens == 4096);
  REQUIRE(block.rows.size() == 2);
  CHECK(block.rows.front().forward == Nanoseconds(10'000'000));
  CHECK(block.rows.back().degrees.tp == 2);
  CHECK(block.rows.back().backward == Nanoseconds(12'000'000));
  CHECK(profile.units.back().kind == ProfileKind::kHead);
  CHECK(profile.units.back().vocabulary == 32'000);
}

TEST_CASE("profiles are written as they were read") {
  auto files = json_files("configs/profiles");
  CHECK(files.size() >= 2);
  files.push_back(kRoot + "tests/data/profile/ok.json");
  for (const std::filesystem::path& path : files) {
    INFO(path.string());
    const Profile profile = valid(content(path), path);
    CHECK(valid(io::write_canonical(profile_json(profile)), "copy.json") == profile);
  }
}

TEST_CASE("a profile of experts keeps all degrees and activations") {
  // One block of 8 experts of 2048, two a token: 4 x 1024^2 + 2 x 3 x 1024 x 2048 parameters act on each of 2048
  // tokens, 68 GFLOP and attention. 0.5 ms on one GPU are 140 TFLOP/s and more; over tp 2 x cp 2 a quarter of that.
  const std::string text = R"({"schema": "tangram.profile/1", "gpu": "A100-40GB-SXM", "source": "made up",
    "date": "2026-01-31", "includes_tp_communication": true, "units": [{"kind": "block",
    "block": {"hidden": 1024, "heads": 16, "kv_heads": 4, "moe": {"experts": 8, "experts_per_token": 2,
    "expert_hidden": 2048}}, "dtype": "bf16", "flash_attention": true, "sequence_length": 2048, "rows": [
    {"tp": 2, "cp": 2, "ep": 4, "etp": 2, "sequence_parallel": true, "samples": 1, "forward_ms": 0.5,
     "backward_ms": 1.000001, "activation_bytes": 123456789}]}]})";
  const Profile profile = valid(text, "moe.json");
  const ProfileRow& row = profile.units.front().rows.front();
  CHECK(row.degrees == Degrees{2, 2, 1, 4, 2, true});
  CHECK(row.backward == Nanoseconds(1'000'001));
  CHECK(row.activation == Bytes(123'456'789));
  CHECK(valid(io::write_canonical(profile_json(profile)), "copy.json") == profile);
}

TEST_CASE("a profile may hold collectives alone, and no date") {
  const std::string text = R"({"schema": "tangram.profile/1", "gpu": "A100-40GB-SXM", "source": "made up",
    "includes_tp_communication": false, "collectives": [{"operation": "reduce_scatter", "ranks_per_node": 4, "nodes": 2,
    "sharing": 2, "points": [{"bytes": 1048576, "time_us": 300.5}, {"bytes": 2097152, "time_us": 400}]}]})";
  const Profile profile = valid(text, "curves.json");
  CHECK(profile.units.empty());
  CHECK(profile.date.empty());
  REQUIRE(profile.collectives.size() == 1);
  const CollectiveCurve& curve = profile.collectives.front();
  CHECK(curve.operation == Exchange::kReduceScatter);
  CHECK(curve.group == CurveGroup{4, 2, 2});
  CHECK(curve.points.front() == CurvePoint{Bytes(1'048'576), Nanoseconds(300'500)});
  CHECK(valid(io::write_canonical(profile_json(profile)), "copy.json") == profile);
}

TEST_CASE("a type that the fleet describes can be profiled too") {
  cluster::GpuType own = cluster::catalogue().front();
  own.name = "Own";
  std::string text = content(kRoot + "tests/data/profile/ok.json");
  text.replace(text.find("A100-40GB-SXM"), 13, "Own");
  CHECK_FALSE(read_profile(text, "own.json", cluster::catalogue()).has_value());
  own.peak = {};  // no peak: nothing can be said against its times
  const auto profile = read_profile(text, "own.json", std::vector{own});
  REQUIRE(profile);
  CHECK(profile->device == own);
}

TEST_CASE("rows that launches or exchanges decide are not suspected") {
  const auto accepted = [](const std::string& from, const std::string& to, bool with_communication) {
    std::string text = content(kRoot + "tests/data/profile/ok.json");
    text.replace(text.find(from), from.size(), to);
    if (with_communication) text.replace(text.find("communication\": false"), 21, "communication\": true");
    return read_profile(text, "x.json", cluster::catalogue()).has_value();
  };
  // tp 2 with its all-reduces inside the times: both directions exchange as much, and a slow link can take all the
  // time.
  const std::string two = R"("forward_ms": 6, "backward_ms": 12)";
  CHECK(accepted(two, R"("forward_ms": 6, "backward_ms": 7)", true));
  CHECK_FALSE(accepted(two, R"("forward_ms": 6, "backward_ms": 7)", false));
  CHECK(accepted(two, R"("forward_ms": 6000, "backward_ms": 6000)", true));
  CHECK_FALSE(accepted(two, R"("forward_ms": 6000, "backward_ms": 12000)", false));
  // Below a tenth of the peak products do not decide: 1.8 TFLOP in 100 ms are 18 of 312 TFLOP/s.
  CHECK(accepted(R"("forward_ms": 10, "backward_ms": 20)", R"("forward_ms": 100, "backward_ms": 101)", false));
}

}  // namespace
}  // namespace tangram::cost
