// Where plugins are looked for. Goes in: folders with manifests, the PATH. Comes out: what is there, the first of a
// name before those it hides. Only what a user names is ever run, or what `tangram parallelizers` is asked to try.
//
// A manifest (tangram.parallelizer/1) is a YAML or JSON file NAME.yaml:
//   schema: tangram.parallelizer/1
//   summary: one line
//   command: [python3, planner.py]     words with a / are paths from the manifest's folder, unless absolute
//   environment: {KEY: value}          added to the worker's; pass_environment: [NAME] hands on what is set
//   threads: 1                         of one worker; max_workers: more are not started
//   start_timeout_s: 10                until hello; query_timeout_s: 60 until an answer
//   memory_limit_gib: 8                of address space; off by default, because CUDA reserves far more than it uses
//   files: [core.py, lib/]             more that its answers depend on: when it changes, cached answers do not count
//   install: what to do when it is not there
// A program `tangram-parallelizer-NAME` on the PATH needs none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/parallelizer/plugin.hpp"

namespace tangram::parallelizer {

struct PluginPlaces {
  std::vector<std::string> folders;  ///< first found, first taken
  std::string path;                  ///< of programs, separated by ':'; after the folders
};

struct FoundPlugin {
  PluginSpec spec;
  std::string where;     ///< the manifest or the program
  bool hidden = false;   ///< another of the same name comes first
  Diagnostics mistakes;  ///< of the manifest; then nothing but `spec.name` is known
};

[[nodiscard]] std::vector<FoundPlugin> find_plugins(const PluginPlaces& places);

/// A name, or with a '/' in it the path of a manifest or of a program. Unknown: a usage error that lists what there is.
[[nodiscard]] Expected<PluginSpec> find_plugin(const std::string& name, const PluginPlaces& places);

/// `file` names the text in errors and, without its ending, the plugin; its folder is where relative paths start.
[[nodiscard]] Expected<PluginSpec> read_manifest(std::string text, const std::string& file);

}  // namespace tangram::parallelizer
