#include "commands.hpp"
#include "tangram/parallelizer/remote.hpp"

namespace tangram::app {

ExitCode run_worker(const WorkerArguments& arguments, const Context& context) {
  const auto served = parallelizer::run_agent(arguments.addresses);
  return served ? ExitCode::kOk : report(context.terminal, context.json, served.error());
}

}  // namespace tangram::app
