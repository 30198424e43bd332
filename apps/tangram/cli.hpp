// The command line. Goes in: argv. Comes out: a command with its values, a help text, or what is wrong. The only place
// that knows CLI11.
#pragma once

#include <string>
#include <variant>

#include "command.hpp"
#include "tangram/base/expected.hpp"

namespace tangram::app {

struct HelpText {
  std::string text;
};

[[nodiscard]] Expected<std::variant<Invocation, HelpText>> parse_command_line(int argc, const char* const* argv);

/// True when --json stands anywhere before "--": errors of the command line itself are then JSON too.
[[nodiscard]] bool asks_for_json(int argc, const char* const* argv);

}  // namespace tangram::app
