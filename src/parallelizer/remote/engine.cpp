#include "engine.hpp"

#include "wire.hpp"

namespace tangram::parallelizer {
namespace {

using Words = std::vector<std::string>;

/// srun(1). --overlap: a second plugin's step must not wait for the first's; --wait and --kill-on-bad-exit: an agent
/// that ends does not take the others with it; --mpi: agents are no MPI program.
Words slurm_options(const EngineOptions& options) {
  return {"--ntasks=" + std::to_string(options.workers),
          "--cpus-per-task=" + std::to_string(options.threads),
          "--export=ALL",
          "--mpi=none",
          "--overlap",
          "--wait=0",
          "--kill-on-bad-exit=0"};
}

/// Open MPI binds processes to a core and leaves the environment behind unless told; its --x wants the name alone, so
/// that the secret shows in no list of processes. Hydra, of MPICH and Intel MPI, hands on all of the environment.
Words mpi_options(const EngineOptions& options, MpiKind kind) {
  Words words{"-n", std::to_string(options.workers)};
  if (kind == MpiKind::kOpenMpi) {
    for (const char* word : {"--bind-to", "none", "-x", kSecretVariable}) words.emplace_back(word);
  }
  return words;
}

}  // namespace

MpiKind mpi_kind(std::string_view version) {
  for (const std::string_view mark : {"Open MPI", "OpenRTE", "PRRTE", "prterun"}) {
    if (version.find(mark) != std::string_view::npos) return MpiKind::kOpenMpi;
  }
  return MpiKind::kOther;
}

std::vector<std::string> engine_command(const EngineOptions& options, MpiKind mpi,
                                        std::span<const std::string> addresses) {
  Words words{engine_program(options)};
  const auto append = [&words](const auto& more) { words.insert(words.end(), more.begin(), more.end()); };
  append(options.engine == Engine::kSlurm ? slurm_options(options) : mpi_options(options, mpi));
  if (!options.command.empty()) append(std::span(options.command).subspan(1));
  append(Words{options.agent, "worker"});
  append(addresses);
  return words;
}

std::string engine_program(const EngineOptions& options) {
  if (!options.command.empty()) return options.command.front();
  return options.engine == Engine::kSlurm ? "srun" : "mpirun";
}

std::string install_hint(Engine engine) {
  const char* what = engine == Engine::kSlurm ? "Slurm's client commands (Debian: slurm-client)"
                                              : "an MPI with mpirun (Debian: openmpi-bin)";
  return std::string("install ") + what + ", or say where it is: --worker-launcher /path/to/" +
         (engine == Engine::kSlurm ? "srun" : "mpirun");
}

}  // namespace tangram::parallelizer
