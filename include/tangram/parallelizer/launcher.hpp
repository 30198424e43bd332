// How a worker of a plugin is started. Goes in: a command with its environment and limits. Comes out: a process that
// speaks over a stream, whose end can be told and whose descendants die with it. Local processes are one way;
// remote.hpp has another.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/base/units.hpp"

namespace tangram::parallelizer {

struct WorkerCommand {
  std::vector<std::string> arguments;                            ///< the program first: a path, or a name on PATH
  std::vector<std::pair<std::string, std::string>> environment;  ///< all of it: nothing else is inherited
  std::optional<Bytes> memory_limit;                             ///< of address space (RLIMIT_AS)
  std::string folder = {};                                       ///< where it runs; empty: a folder of its own
  std::chrono::milliseconds grace{0};  ///< when it is to go: SIGTERM, and so long until it is killed; as long
                                       ///< again for what it started
};

/// One running worker. Destroyed: it and all its descendants are gone.
class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;
  [[nodiscard]] virtual int channel() const = 0;  ///< stream socket, non-blocking
  [[nodiscard]] virtual int output() const = 0;   ///< what it prints to stdout and stderr, non-blocking
  /// Lets it end by itself for `grace`, then kills it and everything it started. How it ended, for people: "exit 1",
  /// "signal 11 (Segmentation fault)", "killed".
  virtual std::string stop(std::chrono::milliseconds grace) = 0;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  [[nodiscard]] virtual Expected<std::unique_ptr<WorkerProcess>> launch(const WorkerCommand& command) = 0;
};

/// The program of a command, as execvp looks for it, in the PATH that the worker will have. Empty: there is none.
[[nodiscard]] std::string find_program(const WorkerCommand& command);

/// Child processes of this machine, each in a process group of its own under a guard that outlives us by just long
/// enough to kill what is left (guard.hpp). Linux.
[[nodiscard]] std::unique_ptr<Launcher> make_local_launcher();

}  // namespace tangram::parallelizer
