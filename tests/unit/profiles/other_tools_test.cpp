// Metis, Galvatron, AMP and nccl-tests, right and spoilt.
#include "fixtures.hpp"

namespace tangram::profiles {
namespace {

using namespace fixtures;
using cost::ProfileKind;

Request request(Tool tool, std::vector<SourceFile> files, const std::string& gpu = "A100-40GB-SXM") {
  return {tool, std::move(files), gpu, tiny(), ""};
}

// Metis.

std::vector<SourceFile> metis_files() {
  return {file("metis/DeviceType.A100_tp1_bs1.json"), file("metis/DeviceType.A100_tp1_bs2.json"),
          file("metis/DeviceType.A100_tp1_bs4.json"), file("metis/DeviceType.A100_tp2_bs1.json")};
}

std::vector<SourceFile> metis_files_by_sailor() {
  return {file("metis/sailor_names/TINY/A100-40/mbs1_tmp1.json"),
          file("metis/sailor_names/TINY/A100-40/mbs2_tmp1.json"),
          file("metis/sailor_names/TINY/A100-40/mbs4_tmp1.json")};
}

TEST_CASE("Metis' own names: a sum of both passes, shared out") {
  const Imported result = imported(request(Tool::kMetis, metis_files()));
  const cost::Profile& profile = result.profiles.front();
  CHECK(profile.includes_tp_communication);
  CHECK(profile.date.empty());
  const cost::ProfileUnit& block = unit(profile, ProfileKind::kBlock);
  CHECK(block.dtype == DType::kFp16);  // of the model
  CHECK(block.rows.size() == 4);
  // 0.612, 0.6, 0.594, 0.606 ms: median 0.603.
  CHECK(ms(row(block, 1, 1).forward) == Approx(0.201));
  CHECK(ms(row(block, 1, 1).backward) == Approx(0.402));
  CHECK(ms(row(unit(profile, ProfileKind::kHead), 1, 1).forward) == Approx(0.45));
  CHECK(noted(result, NoteKind::kDetected, "sum-of-passes"));
  CHECK(noted(result, NoteKind::kCorrected, "size-unit"));  // parameters_per_layer_bytes counts parameters
  CHECK(noted(result, NoteKind::kLeftOut, "memory"));
  CHECK_FALSE(noted(result, NoteKind::kDetected, "computed-memory"));
  check_readable(profile);
}

TEST_CASE("Sailor's names for Metis' format: GPU from the folder, 32 bits, computed memory") {
  Request by_folder = request(Tool::kMetis, metis_files_by_sailor(), "");
  const Imported result = imported(by_folder);
  const cost::Profile& profile = result.profiles.front();
  CHECK(profile.device.name == "A100-40GB-SXM");
  CHECK(unit(profile, ProfileKind::kBlock).dtype == DType::kFp32);
  CHECK(ms(row(unit(profile, ProfileKind::kBlock), 1, 2).forward) == Approx(3.9));
  CHECK(noted(result, NoteKind::kDetected, "computed-memory"));  // 240 + 172 b to the last digit
  CHECK_FALSE(noted(result, NoteKind::kCorrected, "size-unit"));
  check_readable(profile);
}

TEST_CASE("memory columns that are equal on two GPUs were computed") {
  std::vector<SourceFile> files = {file("metis/sailor_names/TINY/A100-40/mbs1_tmp1.json"),
                                   file("metis/sailor_names/TINY/A100-40/mbs1_tmp1.json")};
  files.back().path = "TINY/A100-80/mbs1_tmp1.json";
  CHECK(noted(imported(request(Tool::kMetis, files, "")), NoteKind::kDetected, "computed-memory"));
}

TEST_CASE("a layer that stands out does not move the median") {
  std::vector<SourceFile> files = metis_files();
  files[0].text = replaced(files[0].text, "0.594", "39.4");
  const Imported result = imported(request(Tool::kMetis, files));
  CHECK(noted(result, NoteKind::kDetected, "outlier-layers"));
  CHECK(ms(row(unit(result.profiles.front(), ProfileKind::kBlock), 1, 1).forward) == Approx(0.203));
}

TEST_CASE("Metis times in seconds are found out") {
  std::vector<SourceFile> files = metis_files();
  for (SourceFile& one : files)
    one.text = replaced(one.text, "\"layer_compute_total_ms\": [", "\"layer_compute_total_ms\": [");
  SourceFile seconds = files[0];
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{" 0.02,", " 0.00002,"},
                                                                                 {" 0.612,", " 0.000612,"},
                                                                                 {" 0.6,", " 0.0006,"},
                                                                                 {" 0.594,", " 0.000594,"},
                                                                                 {" 0.606,", " 0.000606,"},
                                                                                 {" 1.35", " 0.00135"}}) {
    seconds.text = replaced(seconds.text, from, to);
  }
  const Imported result = imported(request(Tool::kMetis, {seconds}));
  CHECK(noted(result, NoteKind::kCorrected, "time-unit"));
  CHECK(ms(row(unit(result.profiles.front(), ProfileKind::kBlock), 1, 1).forward) == Approx(0.201));
}

TEST_CASE("what Metis files must say") {
  CHECK(refusal(request(Tool::kMetis, {metis_files()[0]}, "")) ==
        "metis/DeviceType.A100_tp1_bs1.json: error: \"A100\" is no GPU type of the catalogue\n  hint: name it with "
        "--gpu\n");
  Request blind = request(Tool::kMetis, {metis_files()[0]});
  blind.model.reset();
  CHECK(refusal(blind) ==
        "metis/DeviceType.A100_tp1_bs1.json: error: the file does not say what a block looks like\n"
        "  hint: give it with --model\n");
  CHECK(refusal(request(Tool::kMetis, {{"a.json", "{}"}})).find("the name does not say GPU, tp and samples") !=
        std::string::npos);
  CHECK(
      refusal(request(Tool::kMetis, {{"DeviceType.A100_tp1_bs1.json", "{}"}})).find("there is no \"execution_time\"") !=
      std::string::npos);
  SourceFile other = metis_files()[0];
  other.text = replaced(other.text, "12596224", "201326592");
  CHECK(refusal(request(Tool::kMetis, {other})).find("parameters_per_layer_bytes of a block are") != std::string::npos);
  CHECK(refusal(request(Tool::kMetis, {metis_files()[0]}, "A100")).find("there is no GPU type \"A100\"") !=
        std::string::npos);
}

// Galvatron.

const std::string kTimes = "galvatron/computation_profiling_bf16_tiny_all.json";
const std::string kMemory = "galvatron/memory_profiling_bf16_tiny_all.json";

TEST_CASE("Galvatron: forward a sample, backward twice of it, activations at tp 1") {
  const Imported result = imported(request(Tool::kGalvatron, {file(kTimes), file(kMemory)}));
  const cost::Profile& profile = result.profiles.front();
  const cost::ProfileUnit& block = unit(profile, ProfileKind::kBlock);
  CHECK(block.dtype == DType::kBf16);  // of the name
  CHECK(ms(row(block, 1, 4).forward) == Approx(0.76));
  CHECK(ms(row(block, 1, 4).backward) == Approx(1.52));
  CHECK(row(block, 1, 2).activation == Bytes(std::llround(2 * 64.25 * (1 << 20))));
  CHECK(ms(row(unit(profile, ProfileKind::kHead), 1, 2).forward) == Approx(0.92));
  CHECK(noted(result, NoteKind::kDetected, "computed-backward"));
  CHECK(noted(result, NoteKind::kDetected, "embedding-in-head"));
  CHECK(noted(result, NoteKind::kDetected, "size-unit"));
  check_readable(profile);
}

TEST_CASE("Galvatron: MB that are MB") {
  SourceFile memory = file(kMemory);
  memory.text = replaced(memory.text, "48.051", "50.385");  // 12,596,224 parameters of 4 bytes in 10^6
  const Imported result = imported(request(Tool::kGalvatron, {file(kTimes), memory}));
  CHECK(row(unit(result.profiles.front(), ProfileKind::kBlock), 1, 1).activation == Bytes(64'250'000));
  memory.text = replaced(memory.text, "50.385", "500.385");
  CHECK(noted(imported(request(Tool::kGalvatron, {file(kTimes), memory})), NoteKind::kLeftOut, "other-model"));
}

TEST_CASE("Galvatron: the time of a block out of whole models") {
  // (4.84 - 3.32) / 2 = 0.76 ms a block of 4 samples; 3.32 - 2 x 0.76 = 1.8 ms for the rest.
  const std::string text = R"({"layernum[2]_bsz4_seq1024": 3.32, "layernum[4]_bsz4_seq1024": 4.84})";
  const Imported result = imported(request(Tool::kGalvatron, {{kTimes, text}}));
  CHECK(ms(row(unit(result.profiles.front(), ProfileKind::kBlock), 1, 4).forward) == Approx(0.76));
  CHECK(ms(row(unit(result.profiles.front(), ProfileKind::kHead), 1, 4).forward) == Approx(1.8));
  CHECK(refusal(request(Tool::kGalvatron, {file("galvatron/computation_profiling_bf16_tiny_seqlen1024_all.json")}))
            .find("whole models of one number of blocks alone") != std::string::npos);
}

TEST_CASE("Galvatron: collectives, their units, and bandwidths that are no curves") {
  const std::string path = "galvatron/sp_time_1nodes_4gpus_per_node.json";
  const Imported result = imported(
      request(Tool::kGalvatron, {file(path), file("galvatron/allreduce_bandwidth_1nodes_4gpus_per_node.json")}));
  const auto& curves = result.profiles.front().collectives;
  REQUIRE(curves.size() == 3);
  CHECK(curves[0].operation == cost::Exchange::kAllReduce);
  CHECK(curves[0].group == cost::CurveGroup{2, 1, 1});
  CHECK(curves[2].operation == cost::Exchange::kAllToAll);
  CHECK(ms(curves[1].points.back().time) == Approx(2.07));
  CHECK(noted(result, NoteKind::kLeftOut, "no-size"));
  check_readable(result.profiles.front());
  // In seconds 256 MiB would cross at 190 TB/s.
  SourceFile slip = file(path);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"0.0524", "0.0000524"}, {"0.1514", "0.0001514"}, {"1.1567", "0.0011567"}}) {
    slip.text = replaced(slip.text, from, to);
  }
  const Imported seconds = imported(request(Tool::kGalvatron, {slip}));
  CHECK(noted(seconds, NoteKind::kCorrected, "time-unit"));
  CHECK(seconds.profiles.front().collectives[2] == curves[2]);
}

// AMP.

TEST_CASE("AMP: forward times of the pipeline's layers") {
  const Imported result = imported(request(Tool::kAmp, {file("amp/tiny_P3_1.npy"), file("amp/tiny_P3_2.npy")}, ""));
  const cost::Profile& profile = result.profiles.front();
  CHECK(profile.device.name == "V100-16GB-SXM");
  CHECK(ms(row(unit(profile, ProfileKind::kBlock), 1, 1).forward) == Approx(0.3025));  // of 310, 300, 300, 305 us
  CHECK(ms(row(unit(profile, ProfileKind::kBlock), 2, 1).backward) == Approx(0.5));
  // noop, final norm, head, loss: 1 + 50 + 800 + 100 us
  CHECK(ms(row(unit(profile, ProfileKind::kHead), 1, 1).forward) == Approx(0.951));
  CHECK(noted(result, NoteKind::kDetected, "computed-backward"));
  check_readable(profile);
}

TEST_CASE("AMP: arrays of another kind") {
  SourceFile array = file("amp/tiny_P3_1.npy");
  array.text.resize(array.text.size() - 1);
  CHECK(refusal(request(Tool::kAmp, {array}, "")) ==
        "amp/tiny_P3_1.npy: error: the array's data are cut off\n"
        "  hint: expected a one-dimensional array of little-endian floats (.npy)\n");
  CHECK(refusal(request(Tool::kAmp, {{"a_P3_1.npy", "PK"}}, "")).find("not a NumPy array") != std::string::npos);
  array = file("amp/tiny_P3_1.npy");
  array.text = replaced(array.text, "<f8", ">f8");
  CHECK(refusal(request(Tool::kAmp, {array}, "")).find("another type or shape") != std::string::npos);
  array = file("amp/tiny_P3_1.npy");
  array.text[8] = '\xff';
  array.text[9] = '\xff';
  CHECK(refusal(request(Tool::kAmp, {array}, "")).find("header is cut off") != std::string::npos);
  array = file("amp/tiny_P3_1.npy");
  array.path = "tiny.npy";
  CHECK(refusal(request(Tool::kAmp, {array}, "")).find("does not say instance and tp") != std::string::npos);
}

// nccl-tests.

const std::string kAllReduce = "nccl-tests/all_reduce_8gpus.log";
const std::string kAllGather = "nccl-tests/all_gather_2x4gpus.log";

Request logs(std::vector<SourceFile> files) { return {Tool::kNcclTests, std::move(files), "", std::nullopt, ""}; }

TEST_CASE("nccl-tests: group, GPU and operation from the log") {
  const Imported result = imported(logs({file(kAllReduce), file(kAllGather)}));
  REQUIRE(result.profiles.size() == 1);
  CHECK(result.profiles.front().device.name == "A100-40GB-SXM");  // NVIDIA A100-SXM4-40GB
  const auto& curves = result.profiles.front().collectives;
  REQUIRE(curves.size() == 2);
  CHECK(curves[0].operation == cost::Exchange::kAllReduce);
  CHECK(curves[0].group == cost::CurveGroup{8, 1, 1});
  CHECK(curves[0].points.back() == cost::CurvePoint{Bytes(1 << 28), Nanoseconds(2'110'000)});
  // Named by the file, with the tags of mpirun before each line.
  CHECK(curves[1].operation == cost::Exchange::kAllGather);
  CHECK(curves[1].group == cost::CurveGroup{4, 2, 1});
  CHECK(curves[1].points.size() == 3);
  CHECK(result.notes.empty());
  check_readable(result.profiles.front());
}

SourceFile spoilt(const std::vector<std::pair<std::string, std::string>>& replacements) {
  SourceFile log = file(kAllReduce);
  for (const auto& [from, to] : replacements) log.text = replaced(log.text, from, to);
  return log;
}

TEST_CASE("nccl-tests: sizes in elements, times in milliseconds, rates in other units") {
  const auto right = imported(logs({file(kAllReduce)})).profiles.front().collectives;
  const Imported elements = imported(logs({spoilt(
      {{"     1048576 ", "      262144 "}, {"    16777216 ", "     4194304 "}, {"   268435456 ", "    67108864 "}})}));
  CHECK(noted(elements, NoteKind::kCorrected, "size-unit"));
  CHECK(elements.profiles.front().collectives == right);
  const Imported slow =
      imported(logs({spoilt({{" 95.00 ", " 0.095 "}, {" 240.00 ", " 0.24 "}, {" 2110.00 ", " 2.11 "}})}));
  CHECK(noted(slow, NoteKind::kCorrected, "time-unit"));
  CHECK(slow.profiles.front().collectives == right);
  const Imported rates = imported(logs({spoilt({{" 11.04   19.32 ", " 11.04e9   19.32e9 "},
                                                {" 69.91  122.33 ", " 69.91e9  122.33e9 "},
                                                {"127.22  222.64 ", "127.22e9  222.64e9 "}})}));
  CHECK(noted(rates, NoteKind::kCorrected, "bandwidth-unit"));
  CHECK(rates.profiles.front().collectives == right);
  // 2^30 bytes are 7 % more than 10^9.
  const Imported binary = imported(logs({spoilt({{" 11.04   19.32 ", " 10.28   17.99 "},
                                                 {" 69.91  122.33 ", " 65.11  113.93 "},
                                                 {"127.22  222.64 ", "118.48  207.35 "}})}));
  CHECK(noted(binary, NoteKind::kCorrected, "bandwidth-unit"));
  CHECK(refusal(logs({spoilt({{" 11.04   19.32 ", "  3.04    5.32 "},
                              {" 69.91  122.33 ", " 19.91   34.84 "},
                              {"127.22  222.64 ", " 37.22   65.14 "}})}))
            .find("size over time is not the printed bandwidth") != std::string::npos);
}

TEST_CASE("nccl-tests: logs that say nothing of a plan's group") {
  CHECK(refusal(logs({spoilt({{"all_reduce_perf", "broadcast_perf"}})})).find("not an operation that plans use") !=
        std::string::npos);
  CHECK(refusal(logs({spoilt({{"all_reduce_perf", "sendrecv_perf"}})})).find("bus bandwidth is 1.75 times") !=
        std::string::npos);
  CHECK(refusal(logs({spoilt({{"Rank  1", "Rank  0"}})})).find("ranks are listed twice") != std::string::npos);
  CHECK(refusal(logs({spoilt({{"4003 on     node-a", "4003 on     node-b"}})})).find("different numbers of ranks") !=
        std::string::npos);
  CHECK(refusal(logs({{"all_reduce.log", "nothing\n"}})).find("no result lines") != std::string::npos);
  CHECK(refusal(logs({spoilt({{"[0x17] NVIDIA A100-SXM4-40GB", "[0x17] NVIDIA Unheard-of"}})})) ==
        "nccl-tests/all_reduce_8gpus.log: error: \"NVIDIA Unheard-of\" is no GPU type of the catalogue\n"
        "  hint: name it with --gpu\n");
}

TEST_CASE("nccl-tests: a point beyond the link and one that ran cold are left out") {
  // 256 MiB in 500 us would be 940 GB/s of bus bandwidth.
  const Imported fast = imported(logs({spoilt({{" 2110.00  127.22  222.64 ", " 500.00  536.87  939.52 "}})}));
  CHECK(noted(fast, NoteKind::kLeftOut, "implausible-bandwidth"));
  CHECK(fast.profiles.front().collectives.front().points.size() == 2);
  const Imported cold = imported(logs({spoilt({{" 95.00   11.04   19.32 ", " 9500.0   0.11   0.19 "}})}));
  CHECK(noted(cold, NoteKind::kLeftOut, "not-monotone"));
  CHECK(cold.profiles.front().collectives.front().points.front().bytes == Bytes(1 << 24));
}

TEST_CASE("tools by name") {
  for (const std::string& name : tool_names()) {
    REQUIRE(parse_tool(name));
    CHECK(to_string(*parse_tool(name)) == name);
  }
  CHECK_FALSE(parse_tool("alpa"));
}

}  // namespace
}  // namespace tangram::profiles
