#include "first_files.hpp"

#include <algorithm>

#include "shipped.hpp"
#include "support/catch.hpp"

using namespace tangram::app;

TEST_CASE("first files: the path of a config is that beside the file, and comments stand in the training section") {
  std::string from;
  const std::string text = commented_model("name: a\nfrom: hf/a.json\ntraining:\n  sequence_length: 8", from);
  CHECK(from == "hf/a.json");
  CHECK(text.starts_with("name: a\nfrom: a.json\ntraining:\n  # sequence_length:"));
  CHECK(text.ends_with("describes every key.\n  sequence_length: 8\n"));
}

TEST_CASE("first files: an architecture of its own needs no other file") {
  std::string from;
  CHECK(commented_model("name: a\narchitecture:\n  hidden: 8\n", from) == "name: a\narchitecture:\n  hidden: 8\n");
  CHECK(from.empty());
}

TEST_CASE("shipped: names come from the tree that the test was built in, and files come before them") {
  const std::vector<std::string> clusters = shipped_names(Shipped::kCluster);
  CHECK(std::ranges::is_sorted(clusters));
  CHECK(std::ranges::count(clusters, "h100-a100-v100") == 1);
  CHECK(shipped_or(Shipped::kCluster, "h100-a100-v100").ends_with("/clusters/h100-a100-v100.json"));
  CHECK(shipped_or(Shipped::kModel, "gpt-6.7b").ends_with("/models/gpt-6.7b.yaml"));
  for (const char* path : {"-", "nobody", "./gpt-6.7b", "models/gpt-6.7b", "../gpt-6.7b", ""}) {
    CHECK(shipped_or(Shipped::kModel, path) == path);
  }
  CHECK(shipped_hint(Shipped::kModel, "gpt-6.8b") == "there is a shipped model \"gpt-6.7b\"");
  CHECK(shipped_hint(Shipped::kModel, "./gpt-6.8b").empty());
}

TEST_CASE("first files: every shipped model can be started from") {
  for (const std::string& name : shipped_names(Shipped::kModel)) {
    CAPTURE(name);
    const auto files = first_model(shipped_or(Shipped::kModel, name));
    REQUIRE(files);
    CHECK(files->front().name == "model.yaml");
    CHECK(files->front().text.find("tangram schema model") != std::string::npos);
    CHECK(files->front().text.find("from: hf/") == std::string::npos);
  }
}
