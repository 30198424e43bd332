#include "remote/engine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/catch.hpp"

using namespace tangram::parallelizer;

namespace {

const std::vector<std::string> kAddresses{"10.0.0.1:4000", "[fd00::1]:4000"};

EngineOptions options_of(Engine engine, std::vector<std::string> command) {
  EngineOptions options;
  options.engine = engine;
  options.command = std::move(command);
  options.agent = "/opt/tangram";
  options.workers = 8;
  options.threads = 2;
  return options;
}

std::string line_of(const EngineOptions& options, MpiKind mpi = MpiKind::kOther) {
  return fmt::format("{}", fmt::join(engine_command(options, mpi, kAddresses), " "));
}

}  // namespace

TEST_CASE("srun starts one agent per worker, and the user's options come last") {
  CHECK(line_of(options_of(Engine::kSlurm, {})) ==
        "srun --ntasks=8 --cpus-per-task=2 --export=ALL --mpi=none --overlap --wait=0 --kill-on-bad-exit=0 "
        "/opt/tangram worker 10.0.0.1:4000 [fd00::1]:4000");
  CHECK(line_of(options_of(Engine::kSlurm, {"/opt/slurm/bin/srun", "--partition=cpu"})) ==
        "/opt/slurm/bin/srun --ntasks=8 --cpus-per-task=2 --export=ALL --mpi=none --overlap --wait=0 "
        "--kill-on-bad-exit=0 --partition=cpu /opt/tangram worker 10.0.0.1:4000 [fd00::1]:4000");
}

TEST_CASE("Open MPI is told to hand on the secret, by name") {
  CHECK(line_of(options_of(Engine::kMpi, {}), MpiKind::kOpenMpi) ==
        "mpirun -n 8 --bind-to none -x TANGRAM_WORKER_SECRET /opt/tangram worker 10.0.0.1:4000 [fd00::1]:4000");
  CHECK(line_of(options_of(Engine::kMpi, {"mpirun", "--hostfile", "hosts"}), MpiKind::kOther) ==
        "mpirun -n 8 --hostfile hosts /opt/tangram worker 10.0.0.1:4000 [fd00::1]:4000");
}

TEST_CASE("the kind of mpirun is told from its version") {
  CHECK(mpi_kind("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...") == MpiKind::kOpenMpi);
  CHECK(mpi_kind("prterun (PRRTE) 3.0.2") == MpiKind::kOpenMpi);
  CHECK(mpi_kind("HYDRA build details:\n    Version: 4.0.2\n") == MpiKind::kOther);
  CHECK(mpi_kind("") == MpiKind::kOther);
}
