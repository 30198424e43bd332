// Reading the models and test data of the repository.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model::test {

inline std::string source_path(const std::string& relative) { return std::string(TANGRAM_SOURCE_DIR) + "/" + relative; }

inline std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Paths of the files of a folder with the given ending, sorted.
inline std::vector<std::string> files_of(const std::string& folder, const std::string& ending) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(source_path(folder))) {
    if (entry.path().extension() == ending) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline Model valid(Expected<Model> model) {
  if (!model) FAIL(render(model.error()));
  return std::move(*model);
}

inline Model hf_model(const std::string& name) {
  const std::string path = source_path("configs/models/hf/" + name + ".json");
  return valid(read_hf_config(content(path), path));
}

}  // namespace tangram::model::test
