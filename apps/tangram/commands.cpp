#include <algorithm>

#include "command.hpp"

// In the order in which help lists them. cmd_NAME.cpp describes the command NAME.
#define TANGRAM_COMMANDS(ROW) \
  ROW(init)                   \
  ROW(plan)                   \
  ROW(show)                   \
  ROW(islands)                \
  ROW(cluster)                \
  ROW(gpus)                   \
  ROW(check)                  \
  ROW(simulate)               \
  ROW(compare)                \
  ROW(explain)                \
  ROW(diff)                   \
  ROW(verify)                 \
  ROW(export)                 \
  ROW(import)                 \
  ROW(profile)                \
  ROW(calibrate)              \
  ROW(accuracy)               \
  ROW(kernels)                \
  ROW(disaggregate)           \
  ROW(parallelizers)          \
  ROW(cache)                  \
  ROW(worker)                 \
  ROW(schema)                 \
  ROW(help)                   \
  ROW(completion)             \
  ROW(manual)                 \
  ROW(version)
#define TANGRAM_DECLARED(NAME) Command NAME##_command();
#define TANGRAM_MADE(NAME) NAME##_command(),

namespace tangram::app {

TANGRAM_COMMANDS(TANGRAM_DECLARED)

const std::vector<Command>& commands() {
  static const std::vector<Command> list{TANGRAM_COMMANDS(TANGRAM_MADE)};
  return list;
}

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found != commands().end() ? &*found : nullptr;
}

std::vector<std::string> command_names() { return names_of(commands()); }

}  // namespace tangram::app
