// Folders of files: written whole or not at all, and never over what is there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::io {

/// Gathers files in a folder of a temporary name beside the target, and renames it on commit(). The target must not
/// exist, or be an empty folder. Destroyed without commit(): nothing is left behind.
class OutputFolder {
 public:
  [[nodiscard]] static Expected<OutputFolder> open(std::string path);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&& other) noexcept;
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  /// `name` may have folders of its own, separated by "/".
  [[nodiscard]] Expected<void> add(const std::string& name, std::string_view content, bool executable = false);
  [[nodiscard]] Expected<void> commit();
  /// What a signal handler has to remove; empty after commit().
  [[nodiscard]] const std::string& temporary() const { return temporary_; }

 private:
  OutputFolder(std::string path, std::string temporary);
  std::string path_;
  std::string temporary_;
};

}  // namespace tangram::io
