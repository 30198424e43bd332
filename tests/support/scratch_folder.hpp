// A folder of a test's own, gone with it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "support/catch.hpp"

namespace tangram::testing {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tangram-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  /// Files and folders in it.
  [[nodiscard]] auto count() const {
    namespace fs = std::filesystem;
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tangram::testing
