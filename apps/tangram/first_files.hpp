// Files to start from, with comments that say what else may stand in them. Goes in: what was said of the fleet, a
// shipped model. Comes out: texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::app {

struct FirstFile {
  std::string name;
  std::string text;
};

/// cluster.json as write_cluster has it, with comments.
[[nodiscard]] std::string first_cluster(std::string_view text);

/// model.yaml, and the config.json of Hugging Face that it is made from, if it is.
[[nodiscard]] Expected<std::vector<FirstFile>> first_model(const std::string& shipped);

/// The text of a shipped model.yaml with comments and the path of its `from:` replaced; `from` receives that path,
/// relative to the shipped file; empty where the architecture is in the file itself.
[[nodiscard]] std::string commented_model(std::string_view text, std::string& from);

}  // namespace tangram::app
