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

GpuTable embedded_table() {
  GpuTable table;
  for (const auto& [name, text] : catalogue_files()) read_catalogue_file(name, text, table);
  return table;
}

std::vector<GpuType> types_of(GpuTable table) {
  std::vector<GpuType> types;
  types.reserve(table.size());
  for (auto& [name, type] : table) types.push_back(std::move(type));
  return types;
}

}  // namespace

const std::vector<GpuType>& catalogue() {
  static const std::vector<GpuType> types = types_of(embedded_table());
  return types;
}

Expected<std::vector<GpuType>> read_catalogue(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return tl::unexpected(document.error());
  Diagnostics mistakes;
  GpuTable table = embedded_table();
  io::ObjectReader reader(*document, document->root, "", mistakes);
  static_cast<void>(reader.choice<int>("schema", {{"tangram.gpus/1", 1}}));
  read_gpu_records(reader, table);
  reader.finish();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return types_of(std::move(table));
}

}  // namespace tangram::cluster
