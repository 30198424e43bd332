// tests/data/model/bad: each file with the exact text it is refused with, in <file>.expected.
#include "files.hpp"
#include "support/golden.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

std::string without(std::string text, const std::string& folder) {
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
  return text;
}

}  // namespace

TEST_CASE("bad models: every mistake has its place, its text and its hint", "[golden]") {
  const std::string folder = "tests/data/model/bad";
  std::vector<std::string> inputs = files_of(folder, ".yaml");
  const std::vector<std::string> json = files_of(folder, ".json");
  inputs.insert(inputs.end(), json.begin(), json.end());
  CHECK(inputs.size() >= 50);
  for (const std::string& path : inputs) {
    INFO(path);
    const Expected<Model> model = read_any_model(content(path), path);
    if (model) {
      FAIL_CHECK("accepted");
      continue;
    }
    const std::string text = without(render(model.error()), source_path(folder) + "/");
    CHECK(text == tangram::test::golden(path + ".expected", text));
    for (const Diagnostic& mistake : model.error()) CHECK(mistake.kind == ErrorKind::kInput);
  }
}

TEST_CASE("bad models: what they are made from is accepted") {
  const std::string path = source_path("tests/data/model/ok.yaml");
  CHECK(read_any_model(content(path), path).has_value());
}
