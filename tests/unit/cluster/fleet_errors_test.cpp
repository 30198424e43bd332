// Every malformed cluster.json in tests/data/cluster/bad gives exactly the text beside it.
// Write the expectations anew with TANGRAM_UPDATE_GOLDEN=1, and read the difference before committing it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"

using namespace tangram;

namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> bad_inputs() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TANGRAM_SOURCE_DIR "/tests/data/cluster/bad")) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TEST_CASE("fleet errors: exact texts") {
  const auto paths = bad_inputs();
  CHECK(paths.size() >= 30);
  const bool update = std::getenv("TANGRAM_UPDATE_GOLDEN") != nullptr;
  for (const auto& path : paths) {
    INFO(path.filename().string());
    const auto fleet = cluster::read_fleet(slurp(path), path.filename().string());
    REQUIRE_FALSE(fleet);
    const auto expected = std::filesystem::path(path).replace_extension(".expected");
    if (update) std::ofstream(expected, std::ios::binary) << render(fleet.error());
    CHECK(render(fleet.error()) == slurp(expected));
    for (const Diagnostic& d : fleet.error()) {
      CHECK(d.kind == ErrorKind::kInput);
      CHECK(d.where.line > 0);
      CHECK_FALSE(d.code.empty());
    }
  }
}
