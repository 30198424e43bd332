// How an engine is told to start the agents.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tangram/parallelizer/remote.hpp"

namespace tangram::parallelizer {

/// Whose mpirun it is: they hand the environment on differently.
enum class MpiKind : std::uint8_t { kOpenMpi, kOther };

/// From what `mpirun --version` prints.
[[nodiscard]] MpiKind mpi_kind(std::string_view version);

/// The engine's command line; the user's own options come after ours, so that they win. `mpi` counts for kMpi alone.
[[nodiscard]] std::vector<std::string> engine_command(const EngineOptions& options, MpiKind mpi,
                                                      std::span<const std::string> addresses);

/// "srun", unless the user names another.
[[nodiscard]] std::string engine_program(const EngineOptions& options);

/// What to do where it is not installed.
[[nodiscard]] std::string install_hint(Engine engine);

}  // namespace tangram::parallelizer
