// Says what is wrong with a YAML text in our words, once the library has rejected it.
#pragma once

#include <string>
#include <string_view>

namespace tangram::io {

struct YamlExplanation {
  std::string message;
  std::string hint;
};

/// `library_message`: the bare message of a YAML::ParserException (its `msg`, without the place).
[[nodiscard]] YamlExplanation explain_yaml_failure(std::string_view library_message);

}  // namespace tangram::io
