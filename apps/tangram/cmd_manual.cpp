#include <fmt/format.h>

#include "command_help.hpp"
#include "manual_pages.hpp"
#include "tangram/base/version.hpp"
#include "troff.hpp"

namespace tangram::app {

namespace {

struct ManualArguments {
  std::string topic;  ///< empty: the commands
};

Parameters parameters_of(ManualArguments& a) {
  return {{{"TOPIC", "a page of the manual", &a.topic, /*required=*/false, manual_topics()}}, {}};
}

/// Paragraphs as they are divided by empty lines.
std::string troff_paragraphs(const std::string& text) { return replaced(troff(text), "\n\n", "\n.PP\n"); }

std::string option_entry(const Option& option) {
  std::string flags = option.short_name.empty() ? "" : fmt::format("\\fB\\-{}\\fR, ", option.short_name);
  flags += fmt::format("\\fB\\-\\-{}\\fR", troff(option.name));
  if (!option.value.empty()) flags += fmt::format(" \\fI{}\\fR", troff(option.value));
  return fmt::format(".TP\n{}\n{}\n", flags, troff(option.help));
}

std::string command_entry(const Command& command) {
  std::string out = fmt::format(".SS \"tangram {}{}\"\n{}.\n", command.name,
                                command.usage.empty() ? "" : " [options] " + command.usage, troff(command.summary));
  if (!command.details.empty()) out += ".PP\n" + troff_paragraphs(command.details);
  for (const Option& option : bind(command).parameters.options) out += option_entry(option);
  if (!command.examples.empty()) out += ".PP\n.nf\n" + troff(command.examples) + ".fi\n";
  return out;
}

/// troff with the man macros, section 1.
std::string manual_page() {
  std::string out = fmt::format(
      ".TH TANGRAM 1 \"\" \"tangram {}\" \"User Commands\"\n.SH NAME\ntangram \\- {}\n"
      ".SH SYNOPSIS\n.B tangram\n.I COMMAND\n[options]\n.SH COMMANDS\n",
      version(), "plans LLM training on mixed GPU fleets");
  for (const Command& command : commands()) out += command_entry(command);
  out +=
      ".SH ENVIRONMENT\nAn option that has a default can also be set by a variable TANGRAM_OPTION (as in\n"
      "TANGRAM_ISLAND_TOLERANCE), in .tangram.yaml or in the user\\(aqs tangram/config.yaml; an option comes before\n"
      "a variable, a variable before the files.\n";
  const std::size_t first = kExitTable.find('\n');
  out += ".SH \"EXIT STATUS\"\n.nf\n" + troff(std::string(kExitTable.substr(first + 1))) + ".fi\n";
  out += ".SH \"SEE ALSO\"\n";
  for (const ManualPage& page : manual_pages()) {
    out += fmt::format(".TP\n.BR tangram\\-{} (7)\n{}\n", troff(page.topic), troff(page.title()));
  }
  return out;
}

ExitCode run_manual(const ManualArguments& arguments, const Context& context) {
  if (arguments.topic.empty()) return print_text(context, manual_page());
  if (const auto page = find_page(arguments.topic)) return print_text(context, page_troff(*page));
  return report(context.terminal, context.json, unknown_topic(arguments.topic, manual_topics()));
}

}  // namespace

Command manual_command() {
  return {.name = "manual",
          .usage = "[TOPIC]",
          .summary = "print the manual, or one of its pages, for man",
          .examples = R"(  tangram manual | man -l -
  tangram manual fleet | man -l -
)",
          .details = R"(Without TOPIC, prints the commands and their options (section 1). With TOPIC,
prints the page that tangram help TOPIC shows (section 7).
)",
          .bind = bound<ManualArguments>(parameters_of, run_manual),
          .documentation = true};
}

}  // namespace tangram::app
