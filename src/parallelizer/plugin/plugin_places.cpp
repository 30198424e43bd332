#include "tangram/parallelizer/plugin_places.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/io/file.hpp"
#include "tangram/parallelizer/registry.hpp"

namespace tangram::parallelizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgramPrefix = "tangram-parallelizer-";

bool is_manifest(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".yaml" || ending == ".yml" || ending == ".json";
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

/// Files of a folder in the order of their names; none where it cannot be read.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

FoundPlugin from_manifest(const fs::path& path) {
  FoundPlugin found;
  found.spec.name = path.stem().string();
  found.where = path.string();
  auto text = io::read_file(path.string());
  auto spec = text ? read_manifest(std::move(*text), path.string()) : Expected<PluginSpec>(fail(text.error()));
  if (spec) {
    found.spec = std::move(*spec);
  } else {
    found.mistakes = std::move(spec.error());
  }
  return found;
}

FoundPlugin from_program(const fs::path& path, std::string name) {
  FoundPlugin found;
  found.spec.name = std::move(name);
  found.spec.command = {fs::absolute(path).string()};
  found.where = path.string();
  return found;
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> folders;
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t colon = std::min(path.find(':', from), path.size());
    if (colon > from) folders.push_back(path.substr(from, colon - from));
    from = colon + 1;
  }
  return folders;
}

Diagnostic unknown(const std::string& name, const PluginPlaces& places) {
  std::vector<std::string> known;
  for (const BuiltIn& built_in : built_ins()) known.emplace_back(built_in.name);
  for (const FoundPlugin& found : find_plugins(places)) {
    if (!found.hidden) known.push_back(found.spec.name);
  }
  const auto near = closest(name, known);
  return problem(
      ErrorKind::kUsage, "unknown-parallelizer", fmt::format("there is no parallelizer \"{}\"", name),
      near ? fmt::format("did you mean \"{}\"?", *near)
           : fmt::format("there are {}; tangram parallelizers list says where it looks", fmt::join(known, ", ")));
}

}  // namespace

std::vector<FoundPlugin> find_plugins(const PluginPlaces& places) {
  std::vector<FoundPlugin> found;
  for (const std::string& folder : places.folders) {
    for (const fs::path& file : files_of(folder)) {
      if (is_manifest(file)) found.push_back(from_manifest(file));
    }
  }
  for (const std::string& folder : split_path(places.path)) {
    for (const fs::path& file : files_of(folder)) {
      const std::string name = file.filename().string();
      if (name.starts_with(kProgramPrefix) && is_program(file)) {
        found.push_back(from_program(file, name.substr(kProgramPrefix.size())));
      }
    }
  }
  std::set<std::string> names;
  for (FoundPlugin& plugin : found) plugin.hidden = !names.insert(plugin.spec.name).second;
  return found;
}

Expected<PluginSpec> find_plugin(const std::string& name, const PluginPlaces& places) {
  if (name.find('/') != std::string::npos) {
    FoundPlugin found = is_manifest(name) ? from_manifest(name) : from_program(name, fs::path(name).stem().string());
    if (!found.mistakes.empty()) return fail(std::move(found.mistakes));
    found.spec.found_as = fs::absolute(name).lexically_normal().string();
    return std::move(found.spec);
  }
  for (FoundPlugin& found : find_plugins(places)) {
    if (found.spec.name != name) continue;
    if (!found.mistakes.empty()) return fail(std::move(found.mistakes));
    found.spec.found_as = name;
    return std::move(found.spec);
  }
  return fail(unknown(name, places));
}

}  // namespace tangram::parallelizer
