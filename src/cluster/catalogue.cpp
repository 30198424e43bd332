#include <stdexcept>
#include <string_view>
#include <utility>

#include "gpu_records.hpp"
#include "tangram/cluster/fleet.hpp"

namespace tangram::cluster {

// Generated from configs/gpus (EmbedFiles.cmake): file names and contents.
std::vector<std::pair<std::string_view, std::string_view>> catalogue_files();

namespace {

void read_catalogue_file(std::string_view name, std::string_view text, GpuTable& table) {
  auto document = io::parse_json(std::string(text), std::string(name));
  if (!document) throw std::logic_error("malformed GPU catalogue:\n" + render(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  static_cast<void>(reader.choice<int>("schema", {{"tangram.gpus/1", 1}}));
  read_gpu_records(reader, table);
  reader.finish();
  if (!mistakes.empty()) throw std::logic_error("malformed GPU catalogue:\n" + render(mistakes));
}

std::vector<GpuType> parse_catalogue() {
  GpuTable table;
  for (const auto& [name, text] : catalogue_files()) read_catalogue_file(name, text, table);
  std::vector<GpuType> types;
  types.reserve(table.size());
  for (auto& [name, type] : table) types.push_back(std::move(type));
  return types;
}

}  // namespace

const std::vector<GpuType>& catalogue() {
  static const std::vector<GpuType> types = parse_catalogue();
  return types;
}

}  // namespace tangram::cluster
