#include <stdexcept>
#include <string_view>
#include <utility>

#include "gpu_records.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/schema.hpp"

namespace tangram::cluster {

// Generated from configs/gpus (EmbedFiles.cmake): file names and contents.
std::vector<std::pair<std::string_view, std::string_view>> catalogue_files();

namespace {

/// Adds the records of a tangram.gpus/1 text to the table; what is wrong with them.
Diagnostics read_into(GpuTable& table, std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return std::move(document.error());
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  if (!io::has_schema(reader, "tangram.gpus/1")) return mistakes;
  read_gpu_records(reader, table);
  reader.finish();
  return mistakes;
}

GpuTable embedded_table() {
  GpuTable table;
  for (const auto& [name, text] : catalogue_files()) {
    const Diagnostics mistakes = read_into(table, std::string(text), std::string(name));
    if (!mistakes.empty()) throw std::logic_error("malformed GPU catalogue:\n" + render(mistakes));
  }
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
  GpuTable table = embedded_table();
  Diagnostics mistakes = read_into(table, std::move(text), std::move(file));
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return types_of(std::move(table));
}

}  // namespace tangram::cluster
