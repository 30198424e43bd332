// Says what is wrong with a YAML text in our words, once the library has rejected it.
#pragma once

#include <string>
#include <string_view>

#include "source_text.hpp"

namespace tangram::io {

struct YamlFailure {
  Span span;
  std::string message;
  std::string hint;
};

/// `library_message`: the bare message of a YAML::ParserException (its `msg`, without the place); `at`: its place.
[[nodiscard]] YamlFailure explain_yaml_failure(std::string_view text, std::string_view library_message, std::size_t at);

}  // namespace tangram::io
