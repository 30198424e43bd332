#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "tangram/base/version.hpp"

namespace tangram::app {

namespace {

struct VersionArguments {};

Parameters parameters_of(VersionArguments&) { return {}; }

ExitCode run_version(const VersionArguments&, const Context& context) {
  nlohmann::ordered_json document;
  document["schema"] = "tangram.version/1";
  document["status"] = "ok";
  document["version"] = version();
  document["formats"] = {"tangram.cluster/1", "tangram.model/1", "tangram.launch_plan/1"};
  return print_result(context, fmt::format("tangram {}\n", version()), document);
}

}  // namespace

Command version_command() {
  return {.name = "version",
          .summary = "print the version",
          .examples = R"(  tangram version --json
)",
          .bind = bound<VersionArguments>(parameters_of, run_version)};
}

}  // namespace tangram::app
