// Where the parser stands. Goes in: the tokens of a text. Comes out: one after the other, and the first mistake: behind
// it only the end is seen, so that no caller has to look for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokens.hpp"

namespace tangram::ptx {

class Cursor {
 public:
  /// All outlive it; the last token is the end.
  Cursor(const std::vector<Token>& tokens, std::string_view text, const std::string& file)
      : tokens_(tokens), text_(text), file_(file) {}

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  Token take();
  /// Takes the mark or directive if it is next.
  bool take_if(char mark);
  bool take_if_dot(std::string_view name);
  /// Takes it, or reports that it is missing; `what` says what it would end or begin.
  void expect(char mark, std::string_view what);
  /// A name, or "" after reporting that there is none.
  std::string_view expect_name(std::string_view what);
  /// A whole number within [low, high], signed; `low` after a mistake.
  std::int64_t expect_integer(std::string_view what, std::int64_t low, std::int64_t high);

  void skip_to(char mark);   ///< and past it
  void skip_line(int line);  ///< tokens that stand on it
  void skip_block();         ///< past the next "{" and its "}"
  void skip_parentheses();   ///< from "(" past its ")"

  void report(const Token& at, std::string message, std::string hint, std::string code = "bad-ptx");
  [[nodiscard]] bool failed() const { return mistake_.has_value(); }
  [[nodiscard]] bool at_end() const { return peek().kind == TokenKind::kEnd; }
  [[nodiscard]] const std::optional<Diagnostic>& mistake() const { return mistake_; }

 private:
  void skip_nested(char open, char close);

  const std::vector<Token>& tokens_;
  std::string_view text_;
  const std::string& file_;
  std::size_t position_ = 0;
  std::optional<Diagnostic> mistake_;
};

/// What a token is called in errors.
[[nodiscard]] std::string shown(const Token& token);

}  // namespace tangram::ptx
