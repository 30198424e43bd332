// The command line for shells and for man. Goes in: the grammar's commands and options, as values. Comes out:
// completion scripts of bash, zsh and fish, and the manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tangram::app {

struct OptionManual {
  std::string short_flag;  ///< "o", or empty
  std::string name;        ///< "output"
  std::string value;       ///< "FILE"; empty: a switch
  std::string help;
  std::vector<std::string> choices;  ///< of the value; empty: anything
  bool list = false;                 ///< the value is several choices, divided by commas
};

struct CommandManual {
  std::string name;
  std::string usage;  ///< arguments
  std::string summary;
  std::string examples;  ///< lines
  std::string details;
  std::vector<OptionManual> options;
  std::vector<std::string> topics;  ///< of help and manual
  /// What the first argument may be: a topic, or a word of the usage before its first space, divided by |.
  [[nodiscard]] std::vector<std::string> actions() const;
};

[[nodiscard]] std::string bash_completion(const std::vector<CommandManual>& commands);
[[nodiscard]] std::string zsh_completion(const std::vector<CommandManual>& commands);
[[nodiscard]] std::string fish_completion(const std::vector<CommandManual>& commands);

/// troff with the man macros, section 1.
[[nodiscard]] std::string manual_page(const std::vector<CommandManual>& commands, std::string_view about,
                                      std::string_view exit_codes);

}  // namespace tangram::app
