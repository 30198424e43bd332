#include "command.hpp"
#include "tangram/parallelizer/remote.hpp"

namespace tangram::app {

namespace {

/// `worker HOST:PORT...`, which srun and mpirun start.
struct WorkerArguments {
  std::vector<std::string> addresses;
};

Parameters parameters_of(WorkerArguments& a) { return {{{"ADDRESS", "HOST:PORT of the planner", &a.addresses}}, {}}; }

ExitCode run_worker(const WorkerArguments& arguments, const Context& context) {
  const auto served = parallelizer::run_agent(arguments.addresses);
  return served ? ExitCode::kOk : report(context.terminal, context.json, served.error());
}

}  // namespace

Command worker_command() {
  return {.name = "worker",
          .usage = "ADDRESS...",
          .summary = "run plugins for a planner on another machine",
          .examples = R"(  tangram plan fleet.json model.yaml --parallelizer galvatron \
    --workers slurm --worker-cores 64
  tangram plan fleet.json model.yaml --parallelizer galvatron \
    --workers mpi --worker-launcher 'mpirun --hostfile hosts' --worker-cores 64
)",
          .details = R"(plan --workers starts this command through srun or mpirun, once per worker, on
the nodes they choose. It connects back over TCP, runs plugins as a local worker
would, and ends with the planner. tangram and the plugins must be installed at
the same paths on all nodes.

Manual: tangram help plugins
)",
          .bind = bound<WorkerArguments>(parameters_of, run_worker)};
}

}  // namespace tangram::app
