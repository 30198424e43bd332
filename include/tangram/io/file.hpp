// Files: read whole, written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "tangram/base/expected.hpp"

namespace tangram::io {

/// The content of a file ("-" reads stdin). Missing, unreadable, a directory, or over `limit_bytes`: a Diagnostic.
[[nodiscard]] Expected<std::string> read_file(const std::string& path, std::size_t limit_bytes = 1U << 30);

/// Opened before the long work, so that a bad path fails early; writes to a temporary name beside the target and
/// renames on commit(). Destroyed without commit(): nothing is left behind. "-" is not handled here.
class OutputFile {
 public:
  [[nodiscard]] static Expected<OutputFile> open(std::string path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  [[nodiscard]] Expected<void> commit(std::string_view content);
  [[nodiscard]] const std::string& path() const { return path_; }
  /// What a signal handler has to remove; empty after commit().
  [[nodiscard]] const std::string& temporary() const { return temporary_; }

 private:
  OutputFile(std::string path, std::string temporary, int descriptor);
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// True when both names lead to the same existing file (inputs are never overwritten).
[[nodiscard]] bool same_file(const std::string& a, const std::string& b);

}  // namespace tangram::io
