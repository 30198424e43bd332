// Broken files: whatever is cut off or overwritten, the importers answer with a reason or with what can be read again.
#include <random>

#include "fixtures.hpp"

namespace tangram::profiles {
namespace {

using namespace fixtures;

struct Fixture {
  Tool tool;
  std::vector<std::string> paths;
};

const std::vector<Fixture>& all_fixtures() {
  static const std::vector<Fixture> fixtures = {
      {Tool::kSailor, {"sailor/TINY/A100-40/profile.json", "sailor/llm_info.json", "sailor/training_config_tiny.json"}},
      {Tool::kSailor, {"sailor/A100-40/profiled-data-fp16/TINY_mbs1_tp1_algo0.csv", "sailor/llm_info.json"}},
      {Tool::kSailor, {"sailor/A100-40/profiled-data-fp16/prim_TINY_all_reduce_4gpus.csv"}},
      {Tool::kSailor, {"sailor/A100-40/profiled-data-fp16/p2p_intra_node.csv"}},
      {Tool::kMetis, {"metis/DeviceType.A100_tp1_bs1.json", "metis/DeviceType.A100_tp2_bs1.json"}},
      {Tool::kGalvatron,
       {"galvatron/computation_profiling_bf16_tiny_all.json", "galvatron/memory_profiling_bf16_tiny_all.json",
        "galvatron/sp_time_1nodes_4gpus_per_node.json"}},
      {Tool::kAmp, {"amp/tiny_P3_1.npy"}},
      {Tool::kNcclTests, {"nccl-tests/all_reduce_8gpus.log"}}};
  return fixtures;
}

/// Cut off, a few bytes overwritten with what JSON and tables are made of, or a piece taken out.
std::string spoil(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  constexpr std::string_view kBytes = "0129-.eE,:[]{}\"x \n\xff";
  switch (below(3)) {
    case 0: text.resize(below(text.size())); break;
    case 1: text.erase(below(text.size()), 1 + below(40)); break;
    default: break;
  }
  for (std::size_t i = below(6); i > 0 && !text.empty(); --i) text[below(text.size())] = kBytes[below(kBytes.size())];
  return text;
}

TEST_CASE("spoilt files are refused or imported readably, never more") {
  std::mt19937 random(2026);
  int refused = 0;
  int taken = 0;
  for (const Fixture& fixture : all_fixtures()) {
    for (int round = 0; round < 150; ++round) {
      Request request{fixture.tool, {}, "", round % 3 == 0 ? std::nullopt : std::optional(tiny()), ""};
      if (fixture.tool == Tool::kMetis || fixture.tool == Tool::kGalvatron) request.gpu = "A100-40GB-SXM";
      for (const std::string& path : fixture.paths) request.files.push_back(file(path));
      SourceFile& victim = request.files[random() % request.files.size()];
      victim.text = spoil(victim.text, random);
      const auto result = import_profiles(request, cluster::catalogue());
      if (!result) {
        ++refused;
        CHECK_FALSE(render(result.error()).empty());
        continue;
      }
      ++taken;
      for (const cost::Profile& profile : result->profiles) check_readable(profile);
    }
  }
  CHECK(refused > 100);
  CHECK(taken > 100);
}

}  // namespace
}  // namespace tangram::profiles
