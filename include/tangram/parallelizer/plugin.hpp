// Parallelizers outside of the program. Goes in: what a manifest says about a plugin. Comes out: a Parallelizer whose
// crashes, hangs and nonsense stay its own: every answer is re-checked before it is returned.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tangram/base/deadline.hpp"
#include "tangram/parallelizer/answers.hpp"
#include "tangram/parallelizer/launcher.hpp"

namespace tangram::parallelizer {

inline constexpr int kProtocol = 1;

/// What a plugin can answer. The host does not ask for the rest: such queries are unsupported.
struct Capabilities {
  bool powers_of_two = false;  ///< shapes: GPUs in all, nodes and GPUs of a node
  int max_gpus = 1 << 20;
  int max_nodes = 1 << 20;
  std::vector<std::string> techniques;  ///< for people
  bool cancel = false;                  ///< answers soon after a cancel; others are killed
};

struct PluginInfo {
  std::string name;
  std::string version;
  bool deterministic = true;
  Capabilities capabilities;
};

/// How to run a plugin: a manifest (manifest.hpp), or the defaults for a bare program.
struct PluginSpec {
  std::string name;     ///< as --parallelizer takes it
  std::string summary;  ///< one line
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> pass_environment;  ///< variables handed on if they are set
  int threads = 1;                            ///< of one worker
  int max_workers = 1 << 10;
  std::chrono::milliseconds start_timeout{10'000};
  std::chrono::milliseconds query_timeout{60'000};
  std::optional<Bytes> memory_limit;
  std::string install;             ///< what to do when it is not there
  std::vector<std::string> files;  ///< beside those the command names, what its answers depend on; folders: all in them
  std::string found_as;            ///< what find_plugin finds it by, from anywhere: its name, or an absolute path
};

struct PluginOptions {
  int slots = 1;  ///< threads that all workers together may use: workers = slots / threads of one
  std::function<void(const std::string&)> progress;  ///< one line: "galvatron: 12 of 40 queries"
  std::string log_folder = {};  ///< all that workers print, in files NAME-1.log, NAME-2.log; empty: not kept
  Deadline deadline = {};       ///< then workers are stopped, and what they have not answered is given up
};

/// How many workers of it may run at once.
[[nodiscard]] int most_workers(const PluginSpec& spec, const PluginOptions& options);

/// The worker pool of a plugin. Starts the first worker, which says hello. `launcher` must outlive it.
[[nodiscard]] std::unique_ptr<AnswerSource> make_worker_pool(const PluginSpec& spec, const PluginOptions& options,
                                                             Launcher& launcher);

/// A parallelizer that asks `source` and re-checks what it says: recomputed with the program's own cost model (measured
/// times of `profiles` included), so that plans of all parallelizers compare. `name` marks its plans. Model and
/// profiles must outlive it.
[[nodiscard]] std::unique_ptr<Parallelizer> make_plugin_parallelizer(std::string name,
                                                                     std::unique_ptr<AnswerSource> source,
                                                                     const model::Model& model,
                                                                     const cost::ProfileSet* profiles);

}  // namespace tangram::parallelizer
