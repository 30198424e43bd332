#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "command.hpp"
#include "troff.hpp"

namespace tangram::app {

namespace {

struct CompletionArguments {
  std::string shell;
};

Parameters parameters_of(CompletionArguments& a) { return {{{"SHELL", "bash, zsh or fish", &a.shell}}, {}}; }

std::vector<std::string> flags_of(const Parameters& parameters) {
  std::vector<std::string> flags;
  for (const Option& option : parameters.options) {
    flags.push_back("--" + option.name);
    if (!option.short_name.empty()) flags.push_back("-" + option.short_name);
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
std::string zsh_action(const Option& option) {
  if (option.words.empty()) return "_files";
  const std::string words = fmt::format("{}", fmt::join(option.words, " "));
  return option.list ? fmt::format("_values -s , {} {}", option.value, words) : fmt::format("({})", words);
}

std::string zsh_option(const Option& option) {
  const std::string value = option.value.empty() ? "" : fmt::format(":{}:{}", option.value, zsh_action(option));
  const std::string tail = fmt::format("[{}]{}", zsh_text(option.help), value);
  // With "=" the value may be a word of its own or stand behind one.
  std::string out = shell_quoted(fmt::format("--{}{}{}", option.name, option.value.empty() ? "" : "=", tail));
  if (!option.short_name.empty()) out += " " + shell_quoted(fmt::format("-{}{}", option.short_name, tail));
  return out;
}

/// Of the manual, for commands that show its pages.
std::vector<std::string> topics_of(const Parameters& parameters) {
  return parameters.arguments.empty() ? std::vector<std::string>() : parameters.arguments.front().words;
}

/// What the first argument may be: a topic, or a word of the usage before its first space, divided by |.
std::vector<std::string> actions_of(const Command& command, const Parameters& parameters) {
  if (auto topics = topics_of(parameters); !topics.empty()) return topics;
  const std::string first = command.usage.substr(0, command.usage.find(' '));
  std::vector<std::string> words;
  if (first.find('|') == std::string::npos) return words;
  for (std::size_t begin = 0; begin <= first.size();) {
    const std::size_t end = std::min(first.find('|', begin), first.size());
    words.push_back(first.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string bash_completion() {
  std::string values;
  std::vector<std::string> lists;
  std::string options;
  std::string actions;
  for (const Command& command : commands()) {
    const Parameters parameters = bind(command).parameters;
    for (const Option& option : parameters.options) {
      if (option.words.empty()) continue;
      const std::string pattern = fmt::format("{}:--{}", command.name, option.name);
      values +=
          fmt::format("    {}) words={} ;;\n", pattern, shell_quoted(fmt::format("{}", fmt::join(option.words, " "))));
      if (option.list) lists.push_back(pattern);
    }
    options += fmt::format("    {}) words={} ;;\n", command.name,
                           shell_quoted(fmt::format("{}", fmt::join(flags_of(parameters), " "))));
    if (const auto known = actions_of(command, parameters); !known.empty()) {
      // A page of the manual is no file.
      const char* alone = "; mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"); return";
      actions +=
          fmt::format("    {}) words={}{} ;;\n", command.name, shell_quoted(fmt::format("{}", fmt::join(known, " "))),
                      topics_of(parameters).empty() ? "" : alone);
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
      fmt::join(command_names(), " "), values, options, fmt::join(lists, "|"), actions);
}

std::string zsh_completion() {
  std::string names;
  std::string cases;
  for (const Command& command : commands()) {
    names += fmt::format("    {}\n", shell_quoted(command.name + ":" + zsh_text(command.summary)));
    const Parameters parameters = bind(command).parameters;
    cases += fmt::format("    {})\n      _arguments \\\n", command.name);
    for (const Option& option : parameters.options) cases += fmt::format("        {} \\\n", zsh_option(option));
    const auto actions = actions_of(command, parameters);
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

std::string fish_completion() {
  std::string out = "# fish completion of tangram: tangram completion fish > ~/.config/fish/completions/tangram.fish\n";
  for (const Command& command : commands()) {
    out += fmt::format("complete -c tangram -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                       fish_quoted(command.summary));
    const Parameters parameters = bind(command).parameters;
    const std::string seen = fmt::format("complete -c tangram -n '__fish_seen_subcommand_from {}'", command.name);
    if (const auto actions = actions_of(command, parameters); !actions.empty()) {
      out += fmt::format("{} -a '{}'\n", seen, fmt::join(actions, " "));
    }
    for (const Option& option : parameters.options) {
      out += fmt::format("{} -l {}", seen, option.name);
      if (!option.short_name.empty()) out += fmt::format(" -s {}", option.short_name);
      const std::string words = fmt::format("{}", fmt::join(option.words, " "));
      if (!words.empty())
        out += option.list ? fmt::format(" -x -a '(__fish_append , {})'", words) : fmt::format(" -x -a '{}'", words);
      if (option.words.empty() && !option.value.empty()) out += " -r";
      out += fmt::format(" -d {}\n", fish_quoted(option.help));
    }
  }
  return out;
}

ExitCode run_completion(const CompletionArguments& arguments, const Context& context) {
  if (arguments.shell == "bash") return print_text(context, bash_completion());
  if (arguments.shell == "zsh") return print_text(context, zsh_completion());
  if (arguments.shell == "fish") return print_text(context, fish_completion());
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  return report(context.terminal, context.json,
                usage_mistake("unknown-shell", fmt::format("no completion for \"{}\"", arguments.shell),
                              suggestion(arguments.shell, shells, listing("shells", shells))));
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .usage = "bash|zsh|fish",
          .summary = "print a shell completion script",
          .examples = R"(  source <(tangram completion bash)
  tangram completion zsh > "${fpath[1]}/_tangram"
  tangram completion fish > ~/.config/fish/completions/tangram.fish
)",
          .bind = bound<CompletionArguments>(parameters_of, run_completion),
          .documentation = true};
}

}  // namespace tangram::app
