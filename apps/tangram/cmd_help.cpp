#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "command_help.hpp"
#include "manual_pages.hpp"

namespace tangram::app {

namespace {

/// `help TOPIC`, of a page of the manual or a command.
struct HelpArguments {
  std::string topic;  ///< empty: not given
};

std::vector<std::string> help_words() {
  std::vector<std::string> words = manual_topics();
  std::ranges::copy(command_names(), std::back_inserter(words));
  return words;
}

Parameters parameters_of(HelpArguments& a) {
  return {{{"TOPIC", "a page of the manual, or a command", &a.topic, /*required=*/false, help_words()}}, {}};
}

ExitCode run_help(const HelpArguments& arguments, const Context& context) {
  if (arguments.topic.empty()) {
    return print_text(context, fmt::format("Manual, tangram help TOPIC:\n{}\nCommands, tangram help COMMAND:\n{}",
                                           listed_topics(), listed_commands()));
  }
  if (const Command* command = find_command(arguments.topic)) return print_text(context, command_help(*command));
  if (const auto page = find_page(arguments.topic)) {
    return print_text(context, page_text(page->markdown, context.terminal));
  }
  return report(context.terminal, context.json, unknown_topic(arguments.topic, help_words()));
}

}  // namespace

Command help_command() {
  return {.name = "help",
          .usage = "[TOPIC]",
          .summary = "show a page of the manual, or the help of a command",
          .examples = R"(  tangram help
  tangram help fleet
  tangram help export
)",
          .details = R"(Without TOPIC, lists the pages of the manual and the commands.
)",
          .bind = bound<HelpArguments>(parameters_of, run_help),
          .documentation = true};
}

}  // namespace tangram::app
