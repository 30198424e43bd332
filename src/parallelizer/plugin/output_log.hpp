// A file with all that one worker prints, for whoever has to find out why it fails.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "descriptor.hpp"

namespace tangram::parallelizer {

/// Of one worker; a plugin that prints without end must not fill the disk.
inline constexpr std::size_t kMostLogged = std::size_t{64} << 20;

class OutputLog {
 public:
  OutputLog() = default;  ///< keeps nothing
  /// Begins `file` anew. Where that is not possible nothing is kept: logs are no reason to fail.
  explicit OutputLog(const std::string& file);

  void append(std::string_view printed);

 private:
  void write(std::string_view text);

  Descriptor file_;
  std::size_t left_ = kMostLogged;
};

}  // namespace tangram::parallelizer
