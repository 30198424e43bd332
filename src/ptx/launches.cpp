#include "tangram/ptx/launches.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string_view>
#include <utility>

#include "tangram/io/json_lines.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::ptx {
namespace {

constexpr std::int64_t kLargestBuffer = std::int64_t{1} << 50;  // beyond the memory of any machine

std::array<std::int64_t, 3> read_extents(io::ObjectReader& reader, std::string_view key) {
  std::array<std::int64_t, 3> extents{1, 1, 1};
  const io::Node* node = reader.raw(key);
  if (node == nullptr) {
    reader.error_at(key, "missing-key", fmt::format("missing key \"{}\"", key), "three numbers, as in [4, 1, 1]");
    return extents;
  }
  bool valid = node->kind == io::NodeKind::kArray && !node->items.empty() && node->items.size() <= extents.size();
  for (std::size_t i = 0; valid && i < node->items.size(); ++i) {
    const io::Node& item = node->items[i];
    valid = item.kind == io::NodeKind::kInteger && item.integer >= 1;
    extents[i] = item.integer;
  }
  if (!valid) {
    reader.error_at(key, "wrong-type", fmt::format("\"{}\" is one to three whole numbers from 1 on", key),
                    "as in [4, 1, 1]");
  }
  return extents;
}

/// Numbers with a fraction are floats: no range depends on them.
std::int64_t read_scalar(io::ObjectReader& reader) {
  const io::Node* node = reader.raw("value");
  if (node->kind == io::NodeKind::kInteger) return node->integer;
  if (node->kind != io::NodeKind::kNumber) {
    reader.error_at("value", "wrong-type", "\"value\" is a number", "pointers are given as \"buffer\" and \"bytes\"");
    return 0;
  }
  return std::bit_cast<std::int32_t>(static_cast<float>(node->number));
}

std::vector<std::int32_t> read_integers(io::ObjectReader& reader, std::int64_t bytes) {
  constexpr std::int64_t kWidth = sizeof(std::int32_t);
  std::vector<std::int32_t> integers;
  const io::Node* node = reader.raw("integers");
  bool valid = node->kind == io::NodeKind::kArray && static_cast<std::int64_t>(node->items.size()) <= bytes / kWidth;
  for (std::size_t i = 0; valid && i < node->items.size(); ++i) {
    const io::Node& item = node->items[i];
    valid = item.kind == io::NodeKind::kInteger && std::in_range<std::int32_t>(item.integer);
    if (valid) integers.push_back(static_cast<std::int32_t>(item.integer));
  }
  if (!valid) {
    reader.error_at("integers", "wrong-type", "\"integers\" is a list of 32-bit integers that \"bytes\" hold",
                    "those that the buffer begins with, as in [3, 1, 4]");
  }
  return integers;
}

Argument read_argument(io::ObjectReader& reader) {
  Argument argument = std::int64_t{0};
  if (reader.has("value")) {
    argument = read_scalar(reader);
  } else {
    BufferArgument buffer;
    buffer.name = reader.string("buffer");
    buffer.bytes = reader.integer("bytes", {0, kLargestBuffer});
    buffer.offset = reader.integer_or("offset", 0, {0, kLargestBuffer});
    if (reader.has("integers")) buffer.integers = read_integers(reader, buffer.bytes);
    argument = std::move(buffer);
  }
  reader.finish();
  return argument;
}

Launch read_launch(const io::Document& document, Diagnostics& mistakes) {
  io::ObjectReader reader(document, document.root, "", mistakes);
  Launch launch;
  launch.entry = reader.string("entry");
  launch.grid = read_extents(reader, "grid");
  launch.block = read_extents(reader, "block");
  for (io::ObjectReader& argument : reader.objects_if("arguments")) {
    launch.arguments.push_back(read_argument(argument));
  }
  reader.finish();
  return launch;
}

}  // namespace

Expected<std::vector<RecordedLaunch>> read_launches(const std::string& text, const std::string& file) {
  std::vector<RecordedLaunch> launches;
  Diagnostics mistakes;
  for (const auto& [line, one] : io::filled_lines(text)) {
    if (mistakes.size() >= kMaxDiagnostics) break;
    const std::size_t before = mistakes.size();
    const auto document = io::parse_json(std::string(one), file);
    if (document) {
      launches.push_back({read_launch(*document, mistakes), line});
    } else {
      mistakes.insert(mistakes.end(), document.error().begin(), document.error().end());
    }
    for (std::size_t i = before; i < mistakes.size(); ++i) mistakes[i].where.line = line;
  }
  if (launches.empty() && mistakes.empty()) {
    Diagnostic empty;
    empty.code = "no-launches";
    empty.where.file = file;
    empty.message = "the file holds no launches";
    empty.hint = R"(one JSON object a line, with "entry", "grid", "block" and "arguments")";
    mistakes.push_back(std::move(empty));
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return launches;
}

}  // namespace tangram::ptx
