// Every malformed cluster.json in tests/data/cluster/bad gives exactly the text beside it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "support/catch.hpp"
#include "support/golden.hpp"
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

TEST_CASE("fleet errors: exact texts", "[golden]") {
  const auto paths = bad_inputs();
  CHECK(paths.size() >= 30);
  for (const auto& path : paths) {
    INFO(path.filename().string());
    const auto fleet = cluster::read_fleet(slurp(path), path.filename().string());
    REQUIRE_FALSE(fleet);
    const std::string text = render(fleet.error());
    CHECK(text == test::golden(std::filesystem::path(path).replace_extension(".expected"), text));
    for (const Diagnostic& d : fleet.error()) {
      CHECK(d.kind == ErrorKind::kInput);
      CHECK(d.where.line > 0);
      CHECK_FALSE(d.code.empty());
    }
  }
}
