#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "tangram/base/version.hpp"

namespace tangram::app {

ExitCode run_version(const VersionArguments&, const Context& context) {
  nlohmann::ordered_json document;
  document["schema"] = "tangram.version/1";
  document["status"] = "ok";
  document["version"] = version();
  document["formats"] = {"tangram.cluster/1", "tangram.model/1", "tangram.launch_plan/1"};
  return print_result(context, fmt::format("tangram {}\n", version()), document);
}

}  // namespace tangram::app
