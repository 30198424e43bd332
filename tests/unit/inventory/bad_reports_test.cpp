// Every malformed report in tests/data/cluster/reports/bad gives exactly the text beside it. A file there is a table of
// cases, for the importer that the file is called after:
//     === what is wrong
//     --- FILE                 the text of one report
//     --- error                what is said of it
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/inventory/inventory.hpp"

using namespace tangram;

namespace {

struct Case {
  std::string title;
  std::vector<profiles::SourceFile> files;
  std::string error;
};

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Case> read_cases(const std::string& text) {
  std::vector<Case> cases;
  std::string* target = nullptr;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("=== ")) {
      cases.push_back({line.substr(4), {}, {}});
      target = nullptr;
    } else if (line == "--- error") {
      target = &cases.back().error;
    } else if (line.starts_with("--- ")) {
      cases.back().files.push_back({line.substr(4), {}});
      target = &cases.back().files.back().text;
    } else if (target != nullptr) {
      *target += line + "\n";
    }
  }
  return cases;
}

std::string write_cases(const std::vector<Case>& cases) {
  std::string text;
  for (const Case& one : cases) {
    text += "=== " + one.title + "\n";
    for (const auto& file : one.files) text += "--- " + file.path + "\n" + file.text;
    text += "--- error\n" + one.error;
  }
  return text;
}

using Importer = Expected<inventory::Inventory> (*)(const inventory::Request&, std::span<const cluster::GpuType>);

const std::map<std::string, Importer> kImporters = {
    {"slurm", inventory::from_slurm},
    {"kubernetes", inventory::from_kubernetes},
    {"nvidia-smi", inventory::from_nvidia_smi},
};

}  // namespace

TEST_CASE("bad fleet reports: exact texts", "[golden]") {
  std::size_t count = 0;
  for (const auto& [name, import] : kImporters) {
    const std::filesystem::path path = TANGRAM_SOURCE_DIR "/tests/data/cluster/reports/bad/" + name + ".cases";
    std::vector<Case> cases = read_cases(slurp(path));
    REQUIRE_FALSE(cases.empty());
    for (Case& one : cases) {
      INFO(name << ": " << one.title);
      const auto found = import({one.files, {}}, cluster::catalogue());
      CHECK_FALSE(found);
      one.error = found ? "" : render(found.error());
      CHECK_FALSE(one.error.empty());
      ++count;
    }
    const std::string text = write_cases(cases);
    CHECK(text == test::golden(path, text));
  }
  CHECK(count >= 40);
}
