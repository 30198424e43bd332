#include "first_files.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tangram/io/file.hpp"

namespace tangram::app {

namespace {

constexpr std::string_view kAboutCluster =
    "// A fleet. tangram gpus lists the GPU types; others are described under \"gpus\" (tangram schema cluster).\n"
    "// network: \"cards\" of a node and \"bandwidth_gbit_s\" of each. A node may also have\n"
    "//   \"labels\": { \"rack\": \"r1\" }, which \"links\" may tell apart: [ { \"between\": \"rack\", "
    "\"bandwidth_gbit_s\": 100 } ]\n"
    "//   \"price_per_hour_usd\": 24.5, of the node, in place of the catalogue's\n"
    "// and GPUs of a node that are joined otherwise a \"link\": \"pcie\", \"nvlink-pairs\".\n";

constexpr std::string_view kAboutTraining =
    "  # sequence_length: tokens of a sample. global_batch_samples or global_batch_tokens: of an iteration.\n"
    "  # Also: precision (bf16, fp16, fp8, fp4, fp32, tf32); optimizer (adam, adamw, sgd, adam8bit, adafactor);\n"
    "  # microbatch, which is searched where it is not given; forbid: [ep, zero3], techniques that the trainer lacks.\n"
    "  # tangram schema model describes every key.\n";

constexpr std::string_view kFrom = "from: ";
constexpr std::string_view kTraining = "training:";

/// One line of a shipped model as it stands in the file to start from.
std::string first_line_of(std::string_view line, std::string& from) {
  if (line.starts_with(kFrom)) {
    from = line.substr(kFrom.size());
    return std::string(kFrom) + std::filesystem::path(from).filename().string() + "\n";
  }
  std::string out = std::string(line) + "\n";
  if (line == kTraining) out += kAboutTraining;
  return out;
}

}  // namespace

std::string first_cluster(std::string_view text) { return std::string(kAboutCluster).append(text); }

std::string commented_model(std::string_view text, std::string& from) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += first_line_of(text.substr(0, end), from);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Expected<std::vector<FirstFile>> first_model(const std::string& shipped) {
  auto text = io::read_file(shipped);
  if (!text) return fail(text.error());
  std::string from;
  std::vector<FirstFile> files{{"model.yaml", commented_model(*text, from)}};
  if (from.empty()) return files;
  const std::filesystem::path config = std::filesystem::path(shipped).parent_path() / from;
  auto content = io::read_file(config.string());
  if (!content) return fail(content.error());
  files.push_back({config.filename().string(), std::move(*content)});
  return files;
}

}  // namespace tangram::app
