// The help of the program and of its commands, made from their descriptions.
#pragma once

#include <string>

#include "command.hpp"

namespace tangram::app {

/// Examples first, then what it does, how it is called, and the options.
[[nodiscard]] std::string command_help(const Command& command);
[[nodiscard]] std::string program_help();

/// A line each: the name and what it is.
[[nodiscard]] std::string listed_commands();
[[nodiscard]] std::string listed_topics();

[[nodiscard]] Diagnostics unknown_topic(const std::string& topic, const std::vector<std::string>& known);

}  // namespace tangram::app
