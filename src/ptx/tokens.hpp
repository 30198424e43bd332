// PTX text as tokens. Goes in: the text. Comes out: names, directives, numbers and marks with their places; comments
// and lines of the preprocessor are dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

enum class TokenKind : std::uint8_t {
  kName,     ///< ld, %r1, $L_2, _
  kDot,      ///< .global: text without the dot
  kInteger,  ///< integer
  kFloat,    ///< integer: the bits, of a float where `single`
  kString,   ///< text between the quotes
  kMark,     ///< one character, or "::"
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  std::int64_t integer = 0;
  bool single = false;
  bool after_space = false;  ///< whether something stands between it and the token before
  Place place;

  [[nodiscard]] bool is(char mark) const { return kind == TokenKind::kMark && text.size() == 1 && text[0] == mark; }
  [[nodiscard]] bool is_dot(std::string_view name) const { return kind == TokenKind::kDot && text == name; }
};

/// Line `line` (from 1) of a text, without its end.
[[nodiscard]] std::string line_of(std::string_view text, int line);

/// A mistake at a place of a text.
[[nodiscard]] Diagnostic mistake_at(std::string_view text, const std::string& file, Place place, std::string code,
                                    std::string message, std::string hint, std::size_t length = 1);

/// The last token is kEnd. The tokens point into `text`.
[[nodiscard]] Expected<std::vector<Token>> tokens_of(std::string_view text, const std::string& file);

}  // namespace tangram::ptx
