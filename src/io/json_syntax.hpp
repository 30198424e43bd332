// Says what is wrong with a JSON text, once the parser has rejected it.
#pragma once

#include <string_view>

#include "source_text.hpp"

namespace tangram::io {

/// Position behind blanks and comments at `i`. An unclosed comment stops at its first character.
[[nodiscard]] std::size_t skip_json_blanks(std::string_view text, std::size_t i);

/// Position behind the closing quote of the well-formed string at `i`.
[[nodiscard]] std::size_t skip_json_string(std::string_view text, std::size_t i);

/// What the parser had last accepted.
enum class JsonState { kStart, kObjectStart, kArrayStart, kKey, kMember, kItem, kEnd };

struct JsonFailure {
  std::size_t accepted = 0;  ///< bytes of the text up to the end of the last accepted token
  JsonState state = JsonState::kStart;
  int open_line = 0;         ///< where the innermost open object or array starts, 0 if none is open
  std::size_t reported = 0;  ///< where the parser itself saw the error
};

[[nodiscard]] Diagnostic explain_json_failure(const Document& document, const JsonFailure& failure);

}  // namespace tangram::io
