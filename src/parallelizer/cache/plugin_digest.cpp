// What a plugin is, as far as it can be told without starting it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../plugin/worker_pool.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/parallelizer/answer_cache.hpp"

namespace tangram::parallelizer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string content_of(const fs::path& file) {
  const auto text = io::read_file(file.string());
  return text ? digest(*text) : "unreadable";
}

/// Name and content: where a file lies does not matter.
Json file_json(const fs::path& file) { return Json{file.filename().string(), content_of(file)}; }

bool is_file(const std::string& word) {
  std::error_code ignored;
  return word.find('/') != std::string::npos && fs::is_regular_file(word, ignored);
}

/// A word of the command line or a value of the environment.
Json word_json(const std::string& word) { return is_file(word) ? file_json(word) : Json(word); }

/// A file, or all files below a folder but what Python compiles for itself, in the order of their names.
Json files_json(const fs::path& place) {
  std::error_code error;
  if (!fs::is_directory(place, error)) return Json::array({file_json(place)});
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename() == "__pycache__") entry.disable_recursion_pending();
    if (entry->is_regular_file(error)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  Json all = Json::array();
  for (const fs::path& file : files) all.push_back(Json{file.lexically_relative(place).string(), content_of(file)});
  return all;
}

}  // namespace

// Limits of time and memory are left out: they decide whether there is an answer, not which.
std::string content_digest(const PluginSpec& spec) {
  const std::string program = find_program(worker_command(spec));
  Json said;
  said["protocol"] = kProtocol;
  said["command"] = Json::array({program.empty() ? Json(spec.command.front()) : file_json(program)});
  for (std::size_t i = 1; i < spec.command.size(); ++i) said["command"].push_back(word_json(spec.command[i]));
  said["environment"] = Json::array();
  for (const auto& [name, value] : spec.environment) said["environment"].push_back(Json{name, word_json(value)});
  for (const std::string& name : spec.pass_environment) {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr) said["environment"].push_back(Json{name, word_json(value)});
  }
  said["threads"] = spec.threads;
  said["files"] = Json::array();
  for (const std::string& file : spec.files) said["files"].push_back(files_json(file));
  return digest(io::write_compact(said));
}

}  // namespace tangram::parallelizer
