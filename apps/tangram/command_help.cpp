#include "command_help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "manual_pages.hpp"
#include "table.hpp"

namespace tangram::app {

namespace {

constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kOptionColumn = 33;

constexpr const char* kProgramExamples = R"(  tangram plan h100-a100-v100 llama-2-7b     (a shipped fleet and model)
  tangram init job                           (files of your own, to edit)
  tangram plan fleet.json model.yaml -o plan.json && tangram check plan.json
  tangram islands fleet.json
  tangram help first-steps
)";

constexpr const char* kProgramDetails = "Plans LLM training on mixed GPU fleets. The manual: tangram help.\n";

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string listed(const Entries& entries) {
  std::size_t widest = 0;
  for (const auto& [name, about] : entries) widest = std::max(widest, name.size());
  std::string out;
  for (const auto& [name, about] : entries) out += fmt::format("  {:<{}}  {}\n", name, widest, about);
  return out;
}

std::string described(const std::string& examples, const std::string& details) {
  return fmt::format("Examples:\n{}{}{}\n", examples, details.empty() ? "" : "\n", details);
}

std::string usage_lines(const std::string& usage) {
  const std::string_view before = "Usage: ";
  return fmt::format("{}{}\n", before, fmt::join(wrapped(usage, kHelpWidth - before.size()), "\n       "));
}

/// A name and its description beside it, or below where the name is too long.
std::string entry(std::string name, std::string_view help) {
  const auto lines = wrapped(std::string(help), kHelpWidth - kOptionColumn);
  const std::string indent = "\n" + std::string(kOptionColumn, ' ');
  name.insert(0, "  ");
  if (name.size() >= kOptionColumn) name += indent;
  return fmt::format("{:<{}}{}\n", name, kOptionColumn, fmt::join(lines, indent));
}

std::string option_text(const std::string& short_name, const std::string& name, const std::string& value) {
  return fmt::format("{}--{}{}{}", short_name.empty() ? "    " : fmt::format("-{}, ", short_name), name,
                     value.empty() ? "" : " ", value);
}

std::string parameter_lines(const Parameters& parameters) {
  std::string out;
  if (!parameters.arguments.empty()) out += "\nArguments:\n";
  for (const Argument& argument : parameters.arguments) out += entry(argument.name, argument.help);
  out += "\nOptions:\n";
  for (const Option& option : parameters.options) {
    out += entry(option_text(option.short_name, option.name, option.value), option.help);
  }
  return out;
}

}  // namespace

std::string listed_commands() {
  Entries entries;
  for (const Command& command : commands()) entries.emplace_back(command.name, command.summary);
  return listed(entries);
}

std::string listed_topics() {
  Entries entries;
  for (const ManualPage& page : manual_pages()) entries.emplace_back(page.topic, page.title());
  return listed(entries);
}

Diagnostics unknown_topic(const std::string& topic, const std::vector<std::string>& known) {
  return usage_mistake("unknown-topic", fmt::format("the manual has no page \"{}\"", topic),
                       suggestion(topic, known, "tangram help lists the pages"));
}

std::string command_help(const Command& command) {
  const std::string usage =
      fmt::format("tangram {} [options]{}{}", command.name, command.usage.empty() ? "" : " ", command.usage);
  return described(command.examples, command.details) + usage_lines(usage) + parameter_lines(bind(command).parameters);
}

std::string program_help() {
  return described(kProgramExamples, kProgramDetails) + usage_lines("tangram COMMAND [options]") + "\nCommands:\n" +
         listed_commands() + "\nOptions:\n" + entry(option_text("h", "help", ""), "show this text") +
         entry(option_text("", "version", ""), "print the version") + "\n" + std::string(kExitTable);
}

}  // namespace tangram::app
