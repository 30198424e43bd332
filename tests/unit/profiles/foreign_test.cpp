// Real files of other tools, where a folder of them is at hand: TANGRAM_FOREIGN_PROFILES names it, and what every file
// gave is printed. Files of one folder are imported together, with the model descriptions found anywhere below, by
// every tool and model that may have made them. Nothing may crash, and what is imported must be what read_profile
// accepts.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "fixtures.hpp"

namespace tangram::profiles {
namespace {

namespace fs = std::filesystem;
using namespace fixtures;

std::string gpt(const char* name, int hidden, int heads, int layers, int vocabulary, int tokens) {
  return fmt::format(
      "schema: tangram.model/1\nname: {}\narchitecture: {{vocabulary: {}, hidden: {}, layers: {}, heads: {}, "
      "ffn_hidden: {}, gated: false, norm: layernorm, qkv_bias: true, output_bias: true, ffn_bias: true, "
      "tied_embeddings: true, learned_positions: {}}}\n"
      "training: {{sequence_length: {}, global_batch_samples: 64, precision: fp16, flash_attention: false}}\n",
      name, vocabulary, hidden, layers, heads, 4 * hidden, tokens, tokens);
}

/// What the known collections measured, by a part of the path. Dimensions: Zhang et al., arXiv 2205.01068, table 1;
/// Sailor's training configs; Llama's papers.
struct KnownModel {
  const char* path_part;
  std::string text;
};

/// What Sailor calls LLAMA-3-8 has 16 h^2 parameters a block, by its llm_info: no grouped queries, and 4 h wide.
const std::string kWideLlama =
    "schema: tangram.model/1\nname: wide-llama\narchitecture: {vocabulary: 128256, hidden: 4096, layers: 32, heads: "
    "32, "
    "ffn_hidden: 16384}\n"
    "training: {sequence_length: 8192, global_batch_samples: 64, precision: bf16, flash_attention: false}\n";

std::vector<KnownModel> known_models() {
  const std::string models = std::string(TANGRAM_SOURCE_DIR) + "/configs/models/";
  return {{"OPT-350", gpt("opt-350", 1024, 16, 24, 50272, 2048)},
          {"GPT-Neo-2.7", gpt("gpt-neo", 2560, 32, 32, 50257, 2048)},
          {"OPT-30", gpt("opt-30", 7168, 56, 48, 50272, 2048)},
          {"LLAMA-3-8", content(models + "llama-3-8b.yaml")},
          {"LLAMA-3-8", kWideLlama},
          {"llama3", content(models + "llama-3-8b.yaml")},
          {"llama3", kWideLlama},
          {"llama2-7b", content(models + "llama-2-7b.yaml")}};
}

std::vector<std::optional<model::Model>> models_for(const std::string& path) {
  std::vector<std::optional<model::Model>> models;
  for (const KnownModel& known : known_models()) {
    if (path.find(known.path_part) == std::string::npos) continue;
    model::JobOverrides overrides;
    if (path.find("seq2048") != std::string::npos || path.find("llama2") != std::string::npos) {
      overrides.sequence_length = 2048;
    }
    auto model =
        model::read_any_model(known.text, std::string(TANGRAM_SOURCE_DIR) + "/configs/models/x.yaml", overrides);
    REQUIRE(model);
    models.emplace_back(std::move(*model));
  }
  models.emplace_back(std::nullopt);
  return models;
}

bool describes_models(const fs::path& path) {
  const std::string name = path.filename();
  return name == "llm_info.json" || name.starts_with("training_config");
}

struct Outcome {
  std::optional<Imported> imported;
  std::string text;
};

std::string summary(const Imported& result) {
  std::string text;
  for (const cost::Profile& profile : result.profiles) {
    std::size_t rows = 0;
    for (const cost::ProfileUnit& unit : profile.units) rows += unit.rows.size();
    text += fmt::format("  {}: {} units, {} rows, {} curves\n", profile.device.name, profile.units.size(), rows,
                        profile.collectives.size());
  }
  for (const Note& note : result.notes)
    text += fmt::format("    {}: {}: {}\n", to_string(note.kind), note.file, note.message);
  return text;
}

/// The tool and model that import most of the files; else the first tool's reason.
Outcome best_of(const std::vector<SourceFile>& files, const std::vector<SourceFile>& companions) {
  Outcome best;
  std::size_t most = 0;
  std::string reasons;
  for (const std::string& name : tool_names()) {
    for (const auto& model : models_for(files.front().path)) {
      Request request{*parse_tool(name), files, "", model, ""};
      if (request.tool == Tool::kSailor)
        request.files.insert(request.files.end(), companions.begin(), companions.end());
      if (request.tool == Tool::kGalvatron) request.gpu = "A800-80GB-SXM";
      if (files.front().path.find("_a100/") != std::string::npos) request.gpu = "A100-40GB-SXM";
      auto result = import_profiles(request, cluster::catalogue());
      if (!result) {
        reasons += fmt::format("  {}: {}\n", name, result.error().front().message);
        continue;
      }
      std::size_t rows = 0;
      for (const cost::Profile& profile : result->profiles) {
        check_readable(profile);
        rows += 1 + profile.collectives.size();
        for (const cost::ProfileUnit& unit : profile.units) rows += unit.rows.size();
      }
      if (rows <= most) continue;
      most = rows;
      best.text = fmt::format("  as {}{}\n{}", name, model ? " of " + model->name : "", summary(*result));
      best.imported = std::move(*result);
    }
  }
  if (!best.imported) best.text = reasons;
  return best;
}

TEST_CASE("a folder of foreign profiles") {
  const char* folder = std::getenv("TANGRAM_FOREIGN_PROFILES");
  if (folder == nullptr || *folder == '\0') {
    WARN("skipped: TANGRAM_FOREIGN_PROFILES names no folder");
    return;
  }
  std::map<std::string, std::vector<SourceFile>> groups;
  std::vector<SourceFile> companions;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const SourceFile source{path.string(), content(path.string())};
    if (describes_models(path)) companions.push_back(source);
    // Sailor's planner files stand for themselves; those of other tools belong together.
    const bool alone = path.extension() != ".json" || path.filename() == "profile.json" ||
                       path.string().find("/sailor/") != std::string::npos;
    const bool metis =
        path.filename().string().starts_with("mbs") || path.filename().string().starts_with("DeviceType");
    groups[alone && !metis ? path.string() : path.parent_path().string()].push_back(source);
  }
  for (const auto& [name, files] : groups) {
    INFO(name);
    const Outcome outcome = best_of(files, companions);
    std::cout << fmt::format("{} ({} file{}): {}\n{}", name, files.size(), files.size() == 1 ? "" : "s",
                             outcome.imported ? "imported" : "not imported", outcome.text);
    CHECK_FALSE(outcome.text.empty());
  }
}

}  // namespace
}  // namespace tangram::profiles
