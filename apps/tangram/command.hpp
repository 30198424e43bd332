// A command: what help says of it, its arguments and options, and what runs it. Each is described in a file of its own,
// cmd_NAME.cpp; commands.cpp lists them. The parser (cli.hpp), the help, the completions and the manual page read that
// list.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "output.hpp"
#include "settings.hpp"
#include "tangram/cluster/edits.hpp"
#include "words.hpp"

namespace tangram::app {

struct Argument {
  std::string name;  ///< as help shows it: "CLUSTER"
  std::string help;
  std::variant<std::string*, std::vector<std::string>*> target;  ///< of a list: one or more
  bool required = true;
  std::vector<std::string> words = {};  ///< what it may be; empty: anything, such as a file

  [[nodiscard]] bool given() const;
};

struct Option {
  using Function = std::function<void(const std::string&)>;

  std::string name;   ///< without dashes: "output"
  std::string value;  ///< as help shows it: "FILE"; empty: a switch
  std::string help;
  /// Where parsing writes. Options with a list may be repeated; of those with a function the last counts.
  std::variant<bool*, std::string*, std::int64_t*, std::vector<std::string>*, Function> target;
  std::vector<std::string> words = {};  ///< what the value may be; empty: anything
  bool list = false;                    ///< the value is several, divided by commas
  std::string short_name = {};          ///< "o"
};

struct Parameters {
  std::vector<Argument> arguments;
  std::vector<Option> options;
};

/// -o, --output
[[nodiscard]] Option output_option(std::string value, std::string help, std::string& path);

/// What every command can be told.
struct CommonValues {
  std::map<std::string, std::string, std::less<>> flags;  ///< settings given as flags
  cluster::Edits edits;                                   ///< --drop, --add, --set, as written
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool show_origin = false;
  bool help = false;
};

/// Parameters with the values that parsing fills, and what then runs the command. The values live as long as `run`.
struct Bound {
  Parameters parameters;
  std::function<ExitCode(const Context&)> run;
};

template <class Arguments>
[[nodiscard]] std::function<Bound()> bound(Parameters (*parameters)(Arguments&),
                                           ExitCode (*run)(const Arguments&, const Context&)) {
  return [=] {
    auto arguments = std::make_shared<Arguments>();
    return Bound{parameters(*arguments), [arguments, run](const Context& context) { return run(*arguments, context); }};
  };
}

struct Command {
  std::string name;
  std::string usage = {};    ///< arguments: "OLD NEW"; actions of the first are divided by |
  std::string summary;       ///< one line, for the list of commands
  std::string examples;      ///< lines; help begins with them
  std::string details = {};  ///< lines
  std::function<Bound()> bind;
  SettingGroups settings = {};
  bool edits_fleet = false;    ///< takes --drop, --add and --set
  bool documentation = false;  ///< works even where configuration files are broken
};

/// In the order in which help lists them.
[[nodiscard]] const std::vector<Command>& commands();
[[nodiscard]] std::vector<std::string> command_names();
[[nodiscard]] const Command* find_command(std::string_view name);

/// A command about to be parsed, with the options of its own and those that it shares with others.
struct Invocation {
  const Command* command;
  Parameters parameters;
  std::function<ExitCode(const Context&)> run;
  std::shared_ptr<CommonValues> common;
};
[[nodiscard]] Invocation bind(const Command& command);

}  // namespace tangram::app
