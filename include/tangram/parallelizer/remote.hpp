// Workers on other machines, started by an engine that is there already: srun or mpirun. Goes in: the engine's command.
// Comes out: a Launcher. The engine starts one `tangram worker` per worker, an agent, which calls back over TCP and
// then starts, feeds and stops workers on its machine as the local launcher does here: deadlines, cancel, what is
// printed and the end of all descendants are the same.
//
// Both sides prove that they know a secret, which the agent finds in its environment; nothing is encrypted, so that the
// network between them has to be one that the job's own traffic may take.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/parallelizer/launcher.hpp"

namespace tangram::parallelizer {

enum class Engine : std::uint8_t { kSlurm, kMpi };

struct EngineOptions {
  Engine engine = Engine::kSlurm;
  std::vector<std::string> command;             ///< its program, then options of the user's own; empty: srun or mpirun
  std::string agent;                            ///< path of this program, on all machines
  int workers = 1;                              ///< most at once
  int threads = 1;                              ///< of one worker
  std::chrono::milliseconds patience{300'000};  ///< until the first agent calls back: jobs may have to wait in a queue
  std::function<void(const std::string&)> progress;  ///< one line for people who wait; may be empty
};

/// Fails at once when the engine is not installed. It is started at the first launch, and ends with the launcher.
[[nodiscard]] Expected<std::unique_ptr<Launcher>> make_engine_launcher(EngineOptions options);

/// What the engine runs: calls the planner at the first of `addresses` (HOST:PORT) that answers, and serves it until it
/// hangs up. The secret is taken from the environment.
[[nodiscard]] Expected<void> run_agent(std::span<const std::string> addresses);

}  // namespace tangram::parallelizer
