// Texts that tests compare byte for byte, one file each. scripts/update_goldens rewrites them all.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tangram::test {

/// What `file` holds, to compare `now` with. With TANGRAM_UPDATE=1 the file holds `now` from here on.
inline std::string golden(const std::filesystem::path& file, const std::string& now) {
  const char* update = std::getenv("TANGRAM_UPDATE");
  if (update != nullptr && std::string(update) == "1") std::ofstream(file, std::ios::binary) << now;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace tangram::test
