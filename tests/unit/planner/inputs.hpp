// Fleets and models of files, for the tests of the planner.
#pragma once

#include <string>

#include "support/catch.hpp"
#include "tangram/cluster/edits.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/file.hpp"
#include "tangram/model/model.hpp"

namespace tangram::planner::tests {

inline std::string in_tree(const std::string& file) { return std::string(TANGRAM_SOURCE_DIR) + "/" + file; }

inline std::string text_of_file(const std::string& path) {
  auto text = io::read_file(path);
  REQUIRE(text);
  return *std::move(text);
}

inline cluster::Fleet fleet_of_text(const std::string& text) {
  auto fleet = cluster::read_fleet(text, "fleet.json");
  REQUIRE(fleet);
  return *std::move(fleet);
}

/// YAML, of which JSON is a part.
inline model::Model model_of_text(const std::string& text) {
  auto model = model::read_model(text, "model.yaml");
  REQUIRE(model);
  return *std::move(model);
}

/// `file`: in the source tree.
inline cluster::Fleet fleet_of_file(const std::string& file, const cluster::Edits& edits = {}) {
  auto fleet = cluster::read_fleet(text_of_file(in_tree(file)), file);
  REQUIRE(fleet);
  auto edited = cluster::edited(*std::move(fleet), edits);
  REQUIRE(edited);
  return *std::move(edited);
}

inline model::Model model_of_file(const std::string& file, const model::JobOverrides& overrides = {}) {
  auto model = model::read_any_model(text_of_file(in_tree(file)), in_tree(file), overrides);
  REQUIRE(model);
  return *std::move(model);
}

/// Two nodes of two Big, one of four Small.
inline cluster::Fleet tiny_fleet() { return fleet_of_file("tests/cli/inputs/tiny.json"); }

inline model::Model mini_model() { return model_of_file("tests/cli/inputs/mini.yaml"); }

}  // namespace tangram::planner::tests
