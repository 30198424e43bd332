#include "manual.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "manual_pages.hpp"
#include "tangram/base/version.hpp"
#include "troff.hpp"

namespace tangram::app {

namespace {

std::vector<std::string> flags_of(const CommandManual& command) {
  std::vector<std::string> flags;
  for (const OptionManual& option : command.options) {
    flags.push_back("--" + option.name);
    if (!option.short_flag.empty()) flags.push_back("-" + option.short_flag);
  }
  return flags;
}

/// Inside single quotes of a POSIX shell.
std::string shell_quoted(std::string text) { return "'" + replaced(std::move(text), "'", "'\\''") + "'"; }

/// fish knows \' and \\ inside single quotes.
std::string fish_quoted(std::string text) {
  return "'" + replaced(replaced(std::move(text), "\\", "\\\\"), "'", "\\'") + "'";
}

/// Brackets and colons divide the specifications of _arguments.
std::string zsh_text(std::string text) {
  for (const char* mark : {"\\", "[", "]", ":"}) text = replaced(std::move(text), mark, std::string("\\") + mark);
  return text;
}

/// What zsh offers as a value.
std::string zsh_action(const OptionManual& option) {
  if (option.choices.empty()) return "_files";
  const std::string words = fmt::format("{}", fmt::join(option.choices, " "));
  return option.list ? fmt::format("_values -s , {} {}", option.value, words) : fmt::format("({})", words);
}

std::string zsh_option(const OptionManual& option) {
  const std::string value = option.value.empty() ? "" : fmt::format(":{}:{}", option.value, zsh_action(option));
  const std::string tail = fmt::format("[{}]{}", zsh_text(option.help), value);
  // With "=" the value may be a word of its own or stand behind one.
  std::string out = shell_quoted(fmt::format("--{}{}{}", option.name, option.value.empty() ? "" : "=", tail));
  if (!option.short_flag.empty()) out += " " + shell_quoted(fmt::format("-{}{}", option.short_flag, tail));
  return out;
}

/// Paragraphs as they are divided by empty lines.
std::string troff_paragraphs(const std::string& text) { return replaced(troff(text), "\n\n", "\n.PP\n"); }

std::string option_entry(const OptionManual& option) {
  std::string flags = option.short_flag.empty() ? "" : fmt::format("\\fB\\-{}\\fR, ", option.short_flag);
  flags += fmt::format("\\fB\\-\\-{}\\fR", troff(option.name));
  if (!option.value.empty()) flags += fmt::format(" \\fI{}\\fR", troff(option.value));
  return fmt::format(".TP\n{}\n{}\n", flags, troff(option.help));
}

std::string command_entry(const CommandManual& command) {
  std::string out = fmt::format(".SS \"tangram {}{}\"\n{}.\n", command.name,
                                command.usage.empty() ? "" : " [options] " + command.usage, troff(command.summary));
  if (!command.details.empty()) out += ".PP\n" + troff_paragraphs(command.details);
  for (const OptionManual& option : command.options) out += option_entry(option);
  if (!command.examples.empty()) out += ".PP\n.nf\n" + troff(command.examples) + ".fi\n";
  return out;
}

}  // namespace

std::vector<std::string> CommandManual::actions() const {
  if (!topics.empty()) return topics;
  const std::string first = usage.substr(0, usage.find(' '));
  std::vector<std::string> words;
  if (first.find('|') == std::string::npos) return words;
  for (std::size_t begin = 0; begin <= first.size();) {
    const std::size_t end = std::min(first.find('|', begin), first.size());
    words.push_back(first.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string bash_completion(const std::vector<CommandManual>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandManual& command : commands) names.push_back(command.name);
  std::string values;
  std::vector<std::string> lists;
  std::string options;
  std::string actions;
  for (const CommandManual& command : commands) {
    for (const OptionManual& option : command.options) {
      if (option.choices.empty()) continue;
      const std::string pattern = fmt::format("{}:--{}", command.name, option.name);
      values += fmt::format("    {}) words={} ;;\n", pattern,
                            shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      if (option.list) lists.push_back(pattern);
    }
    options += fmt::format("    {}) words={} ;;\n", command.name,
                           shell_quoted(fmt::format("{}", fmt::join(flags_of(command), " "))));
    if (const auto known = command.actions(); !known.empty()) {
      // A page of the manual is no file.
      const char* alone = "; mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"); return";
      actions +=
          fmt::format("    {}) words={}{} ;;\n", command.name, shell_quoted(fmt::format("{}", fmt::join(known, " "))),
                      command.topics.empty() ? "" : alone);
    }
  }
  return fmt::format(
      "# bash completion of tangram: source <(tangram completion bash)\n"
      "_tangram() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= word "
      "before=\n"
      "  if [[ $current == = ]]; then current=; fi  # --option=VALUE is three words where = divides words\n"
      "  if [[ $previous == = ]]; then previous=${{COMP_WORDS[COMP_CWORD - 2]}}; fi\n"
      "  if [[ $current == --*=* ]]; then previous=${{current%%=*}} before=$previous= current=${{current#*=}}; fi\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    if [[ $word != -* ]]; then command=$word; break; fi\n"
      "  done\n"
      "  if [[ -z $command ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case $command:$previous in\n{}  esac\n"
      "  if [[ -z $words && $current == -* ]]; then\n"
      "    case $command in\n{}    esac\n"
      "  fi\n"
      "  case $command:$previous in\n"
      "    {})\n"
      "      if [[ $current == *,* ]]; then before+=${{current%,*}}, current=${{current##*,}}; fi\n"
      "      compopt -o nospace 2> /dev/null ;; # another may follow\n"
      "  esac\n"
      "  if [[ -n $words ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n{}  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"; compgen -f -- \"$current\")\n"
      "}}\n"
      "complete -o filenames -F _tangram tangram\n",
      fmt::join(names, " "), values, options, fmt::join(lists, "|"), actions);
}

std::string zsh_completion(const std::vector<CommandManual>& commands) {
  std::string names;
  std::string cases;
  for (const CommandManual& command : commands) {
    names += fmt::format("    {}\n", shell_quoted(command.name + ":" + zsh_text(command.summary)));
    cases += fmt::format("    {})\n      _arguments \\\n", command.name);
    for (const OptionManual& option : command.options) cases += fmt::format("        {} \\\n", zsh_option(option));
    const auto actions = command.actions();
    if (!actions.empty()) cases += fmt::format("        '2:action:({})' \\\n", fmt::join(actions, " "));
    cases += "        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(
      "#compdef tangram\n"
      "# zsh completion of tangram: tangram completion zsh > \"${{fpath[1]}}/_tangram\"\n"
      "_tangram() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n{}  esac\n"
      "}}\n"
      "# Found in $fpath, this file is the function's body, and is called to complete; sourced, it says what it is "
      "for.\n"
      "if [[ $funcstack[1] == _tangram ]]; then _tangram \"$@\"; else compdef _tangram tangram; fi\n",
      names, cases);
}

std::string fish_completion(const std::vector<CommandManual>& commands) {
  std::string out = "# fish completion of tangram: tangram completion fish > ~/.config/fish/completions/tangram.fish\n";
  for (const CommandManual& command : commands) {
    out += fmt::format("complete -c tangram -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                       fish_quoted(command.summary));
    const std::string seen = fmt::format("complete -c tangram -n '__fish_seen_subcommand_from {}'", command.name);
    if (const auto actions = command.actions(); !actions.empty()) {
      out += fmt::format("{} -a '{}'\n", seen, fmt::join(actions, " "));
    }
    for (const OptionManual& option : command.options) {
      out += fmt::format("{} -l {}", seen, option.name);
      if (!option.short_flag.empty()) out += fmt::format(" -s {}", option.short_flag);
      const std::string words = fmt::format("{}", fmt::join(option.choices, " "));
      if (!words.empty())
        out += option.list ? fmt::format(" -x -a '(__fish_append , {})'", words) : fmt::format(" -x -a '{}'", words);
      if (option.choices.empty() && !option.value.empty()) out += " -r";
      out += fmt::format(" -d {}\n", fish_quoted(option.help));
    }
  }
  return out;
}

std::string manual_page(const std::vector<CommandManual>& commands, std::string_view about,
                        std::string_view exit_codes) {
  std::string out = fmt::format(
      ".TH TANGRAM 1 \"\" \"tangram {}\" \"User Commands\"\n.SH NAME\ntangram \\- {}\n"
      ".SH SYNOPSIS\n.B tangram\n.I COMMAND\n[options]\n.SH COMMANDS\n",
      version(), troff(std::string(about)));
  for (const CommandManual& command : commands) out += command_entry(command);
  out +=
      ".SH ENVIRONMENT\nAn option that has a default can also be set by a variable TANGRAM_OPTION (as in\n"
      "TANGRAM_ISLAND_TOLERANCE), in .tangram.yaml or in the user\\(aqs tangram/config.yaml; an option comes before\n"
      "a variable, a variable before the files.\n";
  const std::size_t first = exit_codes.find('\n');
  out += ".SH \"EXIT STATUS\"\n.nf\n" + troff(std::string(exit_codes.substr(first + 1))) + ".fi\n";
  out += ".SH \"SEE ALSO\"\n";
  for (const ManualPage& page : manual_pages()) {
    out += fmt::format(".TP\n.BR tangram\\-{} (7)\n{}\n", troff(page.topic), troff(page.title()));
  }
  return out;
}

}  // namespace tangram::app
