// Sailor's layers, operators and collectives, right and spoilt.
#include <fmt/format.h>

#include "fixtures.hpp"

namespace tangram::profiles {
namespace {

using namespace fixtures;
using cost::ProfileKind;

const std::string kLayers = "sailor/TINY/A100-40/profile.json";
const std::string kInfo = "sailor/llm_info.json";
const std::string kConfig = "sailor/training_config_tiny.json";
const std::string kOperators = "sailor/A100-40/profiled-data-fp16/TINY_mbs1_tp1_algo0.csv";
const std::string kMoreOperators = "sailor/A100-40/profiled-data-fp16/TINY_mbs2_tp1_algo0.csv";

Request request(std::vector<SourceFile> files) { return {Tool::kSailor, std::move(files), "", tiny(), "2026-01-31"}; }

/// Six layers at one tp, {samples: forward of a block} in the file's unit; backward `ratio` times as long.
SourceFile layers(const std::vector<std::pair<int, double>>& forward, double ratio = 2, int tp = 1) {
  std::string text = "{";
  for (const auto& [samples, time] : forward) {
    text += fmt::format("{}\"{}\": {{\"{}\": {{", text.size() > 1 ? ", " : "", samples, tp);
    for (int layer = 0; layer < 6; ++layer) {
      const double share = layer == 0 ? 0.1 : layer == 5 ? 2.5 : 1;
      text += fmt::format("{}\"{}\": [{}, {}, 1]", layer > 0 ? ", " : "", layer, share * time, ratio * share * time);
    }
    text += "}}";
  }
  return {kLayers, text + "}"};
}

TEST_CASE("layers of Sailor become blocks and a head") {
  const Imported result = imported(request({file(kLayers)}));
  REQUIRE(result.profiles.size() == 1);
  const cost::Profile& profile = result.profiles.front();
  CHECK(profile.device.name == "A100-40GB-SXM");  // of the folder A100-40
  CHECK(profile.date == "2026-01-31");
  CHECK(profile.includes_tp_communication);
  const cost::ProfileUnit& block = unit(profile, ProfileKind::kBlock);
  CHECK(block.dtype == DType::kFp32);  // the tool's, not the job's
  CHECK(block.sequence_length == 1024);
  CHECK(block.rows.size() == 6);
  CHECK(ms(row(block, 1, 1).forward) == Approx(1.9));
  CHECK(ms(row(block, 2, 4).backward) == Approx(8.03).epsilon(1e-3));
  CHECK(ms(row(unit(profile, ProfileKind::kHead), 1, 2).forward) == Approx(9));
  CHECK(unit(profile, ProfileKind::kHead).vocabulary == 32'000);
  CHECK(unit(profile, ProfileKind::kEmbedding).rows.size() == 6);
  CHECK(noted(result, NoteKind::kDetected, "repeated-layers"));
  CHECK(noted(result, NoteKind::kLeftOut, "update"));
  check_readable(profile);
}

TEST_CASE("dimensions from a training config, or from llm_info alone") {
  Request by_config = request({file(kLayers), file(kConfig)});
  by_config.model.reset();
  CHECK(unit(imported(by_config).profiles.front(), ProfileKind::kBlock).block ==
        unit(imported(request({file(kLayers)})).profiles.front(), ProfileKind::kBlock).block);
  Request by_info = request({file(kLayers), file(kInfo)});
  by_info.model.reset();
  const Imported result = imported(by_info);
  const model::BlockType& block = unit(result.profiles.front(), ProfileKind::kBlock).block;
  CHECK(block.hidden == 1024);  // of 12 h^2 + 13 h parameters
  CHECK(block.tokens == 1024);
  CHECK(block.attention.heads == 16);
  CHECK(noted(result, NoteKind::kDetected, "dimensions"));
  CHECK(unit(result.profiles.front(), ProfileKind::kHead).vocabulary == 32'000);
  Request blind = request({file(kLayers)});
  blind.model.reset();
  CHECK(refusal(blind) ==
        "sailor/TINY/A100-40/profile.json: error: nothing says what the blocks of \"TINY\" look like\n"
        "  hint: give --model, or Sailor's training_config of it, or its llm_info.json, among the files\n");
}

TEST_CASE("activations are llm_info's, and computed beyond one sample") {
  const Imported result = imported(request({file(kLayers), file(kInfo)}));
  const cost::ProfileUnit& block = unit(result.profiles.front(), ProfileKind::kBlock);
  CHECK(row(block, 1, 1).activation == Bytes(180'000'000));
  CHECK(row(block, 2, 4).activation == Bytes(4 * 90'000'000));
  CHECK(noted(result, NoteKind::kDetected, "computed-memory"));
}

TEST_CASE("seconds, milliseconds and microseconds are told apart") {
  const auto block_ms = [](double time) {
    const Imported result = imported(request({layers({{1, time}, {2, 2 * time}})}));
    return std::pair(ms(row(unit(result.profiles.front(), ProfileKind::kBlock), 1, 1).forward),
                     noted(result, NoteKind::kCorrected, "time-unit"));
  };
  CHECK(block_ms(0.0019) == std::pair(1.9, false));
  CHECK(block_ms(1.9) == std::pair(1.9, true));
  CHECK(block_ms(1900) == std::pair(1.9, true));
  // The correction is in the profile's source as well.
  const Imported result = imported(request({layers({{1, 1.9}})}));
  CHECK(result.profiles.front().source.ends_with("; times read as ms"));
  // No unit: 28 GFLOP in 1.9e-9 s or in 1.9e6 s.
  CHECK(refusal(request({layers({{1, 1.9e-9}})})).find("no unit fits") != std::string::npos);
}

TEST_CASE("products that ran in TF32 are not fp32") {
  // 27.9 GFLOP in 1 ms: 28 TFLOP/s where fp32 has 19.5 and TF32 156.
  const Imported result = imported(request({layers({{1, 0.001}, {2, 0.002}})}));
  CHECK(unit(result.profiles.front(), ProfileKind::kBlock).dtype == DType::kTf32);
  CHECK(noted(result, NoteKind::kCorrected, "dtype"));
  check_readable(result.profiles.front());
}

TEST_CASE("a weight gradient that was left out is added") {
  const Imported result = imported(request({layers({{1, 0.0019}, {2, 0.0038}}, 0.9)}));
  CHECK(noted(result, NoteKind::kCorrected, "missing-weight-gradient"));
  CHECK(result.profiles.front().source.find("weight gradient added to backward") != std::string::npos);
  // Products with weights are 24 s h^2 of 24 s h^2 + 2 s^2 h (causal): 12/13 at s = h. 0.9 x 1.9 + 12/13 x 1.9 ms.
  const cost::ProfileRow& block = row(unit(result.profiles.front(), ProfileKind::kBlock), 1, 1);
  CHECK(ms(block.backward) == Approx(1.71 + 1.7538).epsilon(2e-3));
  check_readable(result.profiles.front());
  CHECK_FALSE(noted(imported(request({layers({{1, 0.0019}}, 1.96)})), NoteKind::kCorrected, "missing-weight-gradient"));
}

TEST_CASE("sentinels and warm-up rows are left out") {
  const Imported sentinel = imported(request({layers({{1, 0.0019}, {2, 0.0038}, {4, 1e9}})}));
  CHECK(noted(sentinel, NoteKind::kLeftOut, "no-measurement"));
  CHECK(unit(sentinel.profiles.front(), ProfileKind::kBlock).rows.size() == 2);
  const Imported cold = imported(request({layers({{1, 0.39}, {2, 0.0038}, {4, 0.0076}, {8, 0.0152}})}));
  CHECK(noted(cold, NoteKind::kLeftOut, "outlier"));
  CHECK(unit(cold.profiles.front(), ProfileKind::kBlock).rows.size() == 3);
}

TEST_CASE("an embedding without the gradient of its table is left out") {
  // 4 MB of table rows a sample in 1 us: 4200 GB/s and more of 1555.
  std::string text = file(kLayers).text;
  for (const char* time : {"0.0002", "0.0004", "0.0008"}) text = replaced(text, time, "0.000001");
  const Imported result = imported(request({{kLayers, text}}));
  CHECK(noted(result, NoteKind::kLeftOut, "implausible-rate"));
  CHECK(std::ranges::none_of(result.profiles.front().units,
                             [](const auto& u) { return u.kind == ProfileKind::kEmbedding; }));  // tp 2 as well
}

TEST_CASE("a file of another model is left out") {
  model::Model other = tiny();
  other.blocks.resize(12);
  Request wrong = request({file(kLayers)});
  wrong.model = other;
  CHECK(refusal(wrong).find("6 layers; 12 blocks") != std::string::npos);
  // As many layers, other blocks: llm_info says so.
  other = tiny();
  other.types.front().feed_forward.hidden = 8192;
  wrong = request({file(kLayers), file(kInfo)});
  wrong.model = other;
  CHECK(refusal(wrong).find("llm_info counts 12.6 M parameters") != std::string::npos);
}

TEST_CASE("several models and GPUs in one file") {
  const std::string one = layers({{1, 0.0019}}).text;
  const std::string slow = layers({{1, 0.0027}}).text;
  const SourceFile all{"profiles_tmp.json", "{\"TINY\": {\"A100-40\": " + one + ", \"V100-16\": " + slow + "}}"};
  const Imported both = imported(request({all}));
  REQUIRE(both.profiles.size() == 2);
  CHECK(both.profiles[0].device.name == "A100-40GB-SXM");
  CHECK(both.profiles[1].device.name == "V100-16GB-SXM");
  Request chosen = request({all});
  chosen.gpu = "V100-16GB-PCIe";  // which "V100-16" may be as well
  const Imported result = imported(chosen);
  REQUIRE(result.profiles.size() == 1);
  CHECK(result.profiles[0].device.name == "V100-16GB-PCIe");
  CHECK(noted(result, NoteKind::kLeftOut, "other-gpu"));
  const SourceFile unheard{"profiles_tmp.json", "{\"TINY\": {\"A100-40\": " + one + ", \"TPU\": " + slow + "}}"};
  chosen.files = {unheard};
  chosen.gpu = "A100-40GB-SXM";
  CHECK(noted(imported(chosen), NoteKind::kLeftOut, "unknown-gpu"));
}

TEST_CASE("operators in Aceso's format") {
  const Imported result = imported(request({file(kOperators), file(kMoreOperators)}));
  const cost::Profile& profile = result.profiles.front();
  CHECK_FALSE(profile.includes_tp_communication);
  const cost::ProfileUnit& block = unit(profile, ProfileKind::kBlock);
  CHECK(block.dtype == DType::kFp16);  // of the folder
  // Forward 405 us. Backward 404 us lacks the weight gradient (products 179 us against 195 forward): + 195 us.
  CHECK(ms(row(block, 1, 1).forward) == Approx(0.405));
  CHECK(ms(row(block, 1, 1).backward) == Approx(0.404 + 0.195));
  CHECK(noted(result, NoteKind::kCorrected, "missing-weight-gradient"));
  // 150.016 "MB" of activations are MiB: the weights say so, 24 of them in a block.
  CHECK(row(block, 1, 1).activation == Bytes(std::llround(150.016 * (1 << 20))));
  CHECK(noted(result, NoteKind::kDetected, "size-unit"));
  CHECK(ms(row(unit(profile, ProfileKind::kHead), 1, 1).forward) == Approx(0.612));
  check_readable(profile);
}

TEST_CASE("complete operators stay as they are; a cold call is left out; the second algorithm too") {
  const auto spoilt = [&](const std::string& from, const std::string& to) {
    SourceFile one = file(kOperators);
    one.text = replaced(one.text, from, to);
    return one;
  };
  SourceFile complete = spoilt("attention-qkv,50.000,46.000", "attention-qkv,50.000,98.000");
  complete.text = replaced(complete.text, "dense,20.000,18.000", "dense,20.000,39.000");
  complete.text = replaced(complete.text, "GEMM-1,60.000,55.000", "GEMM-1,60.000,118.000");
  complete.text = replaced(complete.text, "GEMM-2,65.000,60.000", "GEMM-2,65.000,127.000");
  CHECK_FALSE(noted(imported(request({complete})), NoteKind::kCorrected, "missing-weight-gradient"));
  const SourceFile cold = spoilt("attention-qkv,50.000,46.000", "attention-qkv,153021.598,46.000");
  const Imported result = imported(request({cold, file(kMoreOperators)}));
  CHECK(noted(result, NoteKind::kLeftOut, "outlier"));
  CHECK(unit(result.profiles.front(), ProfileKind::kBlock).rows.size() == 1);
  SourceFile second = file(kOperators);
  second.path = "A100-40/profiled-data-fp16/TINY_mbs1_tp1_algo1.csv";
  CHECK(noted(imported(request({second, file(kMoreOperators)})), NoteKind::kLeftOut, "algorithm"));
}

TEST_CASE("operators at tp: the weight gradient leaves the all-reduce out") {
  SourceFile two = file(kOperators);
  two.path = "A100-40/profiled-data-fp16/TINY_mbs1_tp2_algo0.csv";
  // Half the weights; GEMM-2 of 165 us holds an all-reduce, GEMM-1 of as many FLOPs takes 60; dense 120 against 50/3.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"4.000,8.000,6.000,6.000,10.000", "4.000,8.000,3.000,6.000,10.000"},
           {"dense,20.000,18.000,4.000,4.002,2.000", "dense,120.000,18.000,4.000,4.002,1.000"},
           {"10.008,8.000,8.000", "10.008,4.000,8.000"},
           {"GEMM-2,65.000,60.000,10.000,4.002,8.000", "GEMM-2,165.000,60.000,10.000,4.002,4.000"}}) {
    two.text = replaced(two.text, from, to);
  }
  const Imported result = imported(request({two}));
  // 404 us + qkv 50 + dense 50/3 + GEMM-1 60 + GEMM-2 60.
  CHECK(ms(row(unit(result.profiles.front(), ProfileKind::kBlock), 2, 1).backward) ==
        Approx(0.404 + 0.186667).epsilon(1e-4));
}

TEST_CASE("collectives in Aceso's format") {
  const Imported result = imported(request({file("sailor/A100-40/profiled-data-fp16/prim_TINY_all_reduce_4gpus.csv"),
                                            file("sailor/A100-40/profiled-data-fp16/p2p_intra_node.csv")}));
  const cost::Profile& profile = result.profiles.front();
  REQUIRE(profile.collectives.size() == 2);
  const cost::CollectiveCurve& curve = profile.collectives.front();
  CHECK(curve.operation == cost::Exchange::kAllReduce);
  CHECK(curve.group == cost::CurveGroup{4, 1, 1});
  REQUIRE(curve.points.size() == 3);
  CHECK(curve.points[0].bytes == Bytes(1 << 20));
  CHECK(ms(curve.points[1].time) == Approx(std::sqrt(0.24 * 0.25)));  // measured twice
  CHECK(profile.collectives.back().operation == cost::Exchange::kSendRecv);
  // 256 MiB at 230 GB/s.
  CHECK(ms(profile.collectives.back().points.back().time) == Approx(256 * 1.048576 / 230).epsilon(1e-5));
  check_readable(profile);
  SourceFile bytes = file("sailor/A100-40/profiled-data-fp16/p2p_intra_node.csv");
  bytes.text = replaced(bytes.text, "17.93,100.0,230.0", "17.93e9,100e9,230e9");
  const Imported slip = imported(request({bytes}));
  CHECK(noted(slip, NoteKind::kCorrected, "bandwidth-unit"));
  CHECK(slip.profiles.front().collectives.front() == profile.collectives.back());
}

TEST_CASE("what is no profile of Sailor's has its place") {
  CHECK(refusal(request({{"A100-40/profile.json", "{\"1\": {\"1\": {\"0\": [1, \"x\"]}}}"}})) ==
        "A100-40/profile.json:1:23: error: expected a number, 0 or more\n"
        "  {\"1\": {\"1\": {\"0\": [1, \"x\"]}}}\n"
        "                        ^~~\n");
  CHECK(refusal(request({{"x.json", "{\"a\": 1}"}})) ==
        "x.json: error: not one of Sailor's profiles\n  hint: nothing else in these files can be imported\n");
  SourceFile odd = file(kOperators);
  odd.text += "enc-odd,1,2\n";
  CHECK(refusal(request({odd}))
            .find("TINY_mbs1_tp1_algo0.csv:18:1: error: expected an operator's name and eight numbers") !=
        std::string::npos);
}

}  // namespace
}  // namespace tangram::profiles
