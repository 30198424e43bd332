#include <filesystem>

#include "tangram/io/reader.hpp"
#include "tangram/io/schema.hpp"
#include "tangram/parallelizer/plugin_places.hpp"

namespace tangram::parallelizer {
namespace {

constexpr io::IntegerRange kThreads{1, 4096};
constexpr io::NumberRange kSeconds{0.001, 86'400};
constexpr io::NumberRange kGibibytes{0.001, 1 << 20};

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

double seconds_of(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1e3; }

/// A word that names a file from the manifest's folder, or the word itself.
std::string resolved(const std::string& word, const std::filesystem::path& folder) {
  const bool relative = word.find('/') != std::string::npos && word.front() != '/' && word.front() != '-';
  return relative ? std::filesystem::absolute(folder / word).lexically_normal().string() : word;
}

}  // namespace

Expected<PluginSpec> read_manifest(std::string text, const std::string& file) {
  auto document = io::parse(std::move(text), file);
  if (!document) return fail(std::move(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  const std::filesystem::path path(file);
  PluginSpec spec;
  spec.name = path.stem().string();
  if (reader.valid() && io::has_schema(reader, "tangram.parallelizer/1")) {
    spec.summary = reader.string_or("summary", "");
    spec.command = reader.strings_if("command");
    if (spec.command.empty()) reader.error_at("command", "missing-key", "\"command\" names no program");
    for (std::string& word : spec.command) word = resolved(word, path.parent_path());
    for (auto& [key, value] : reader.string_members("environment")) {
      spec.environment.emplace_back(key, resolved(value, path.parent_path()));
    }
    spec.pass_environment = reader.strings_if("pass_environment");
    spec.threads = static_cast<int>(reader.integer_or("threads", spec.threads, kThreads));
    spec.max_workers = static_cast<int>(reader.integer_or("max_workers", spec.max_workers, kThreads));
    spec.start_timeout = milliseconds_of(reader.number_or("start_timeout_s", seconds_of(spec.start_timeout), kSeconds));
    spec.query_timeout = milliseconds_of(reader.number_or("query_timeout_s", seconds_of(spec.query_timeout), kSeconds));
    if (const auto limit = reader.number_if("memory_limit_gib", kGibibytes)) {
      spec.memory_limit = ceil_to_bytes(*limit * static_cast<double>(1 << 30));
    }
    spec.files = reader.strings_if("files");
    for (std::string& place : spec.files) place = (path.parent_path() / place).lexically_normal().string();
    spec.install = reader.string_or("install", "");
    reader.finish();
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return spec;
}

}  // namespace tangram::parallelizer
