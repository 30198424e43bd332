#include "shipped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tangram/base/spelling.hpp"

namespace tangram::app {

namespace {

namespace fs = std::filesystem;

std::string suffix_of(Shipped kind) { return kind == Shipped::kCluster ? ".json" : ".yaml"; }

std::string folder_of(Shipped kind) { return shipped_folder(kind == Shipped::kCluster ? "clusters" : "models"); }

bool is_name(const std::string& path) {
  return !path.empty() && path != "-" && path.find('/') == std::string::npos && !path.starts_with('.');
}

}  // namespace

std::string shipped_folder(std::string_view name) {
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  constexpr int kLevels = 5;  // build/release/apps/tangram/tangram -> the tree
  for (int level = 0; !error && level < kLevels && folder.has_relative_path(); ++level) {
    for (const char* data : {"share/tangram", "configs"}) {
      if (fs::is_directory(folder / data / name, error)) return (folder / data / name).string();
    }
    error.clear();
    folder = folder.parent_path();
  }
  return {};
}

std::vector<std::string> shipped_names(Shipped kind) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(kind), error)) {
    if (entry.path().extension() == suffix_of(kind)) names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string shipped_or(Shipped kind, const std::string& path) {
  std::error_code error;
  if (!is_name(path) || fs::exists(path, error)) return path;
  const fs::path file = fs::path(folder_of(kind)) / (path + suffix_of(kind));
  return fs::is_regular_file(file, error) ? file.string() : path;
}

std::string shipped_hint(Shipped kind, const std::string& path) {
  if (!is_name(path)) return {};
  const auto near = closest(path, shipped_names(kind));
  return near ? fmt::format("there is a shipped {} \"{}\"", kind == Shipped::kCluster ? "cluster" : "model", *near)
              : std::string();
}

}  // namespace tangram::app
