// The usual reason why nothing can be written to a place.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace tangram::io {

/// Names the folder that `path` would be in, if the error is that it is not there; else empty.
[[nodiscard]] inline std::string missing_folder_hint(const std::string& path, int error) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (error != ENOENT || folder.empty() || std::filesystem::exists(folder, ignored)) return "";
  return fmt::format("there is no folder {}", folder.string());
}

}  // namespace tangram::io
