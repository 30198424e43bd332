#include "cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tangram::ptx {

std::string shown(const Token& token) {
  constexpr std::size_t kLongest = 40;  // more does not help to find it
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  const std::string text(token.text.substr(0, kLongest));
  return token.kind == TokenKind::kDot ? fmt::format("\".{}\"", text) : fmt::format("\"{}\"", text);
}

const Token& Cursor::peek(std::size_t ahead) const {
  return mistake_ ? tokens_.back() : tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

Token Cursor::take() {
  const Token& token = peek();
  if (!mistake_ && position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool Cursor::take_if(char mark) {
  if (!peek().is(mark)) return false;
  take();
  return true;
}

bool Cursor::take_if_dot(std::string_view name) {
  if (!peek().is_dot(name)) return false;
  take();
  return true;
}

void Cursor::expect(char mark, std::string_view what) {
  if (take_if(mark)) return;
  report(peek(), fmt::format("expected \"{}\" {}, found {}", mark, what, shown(peek())), "");
}

std::string_view Cursor::expect_name(std::string_view what) {
  if (peek().kind == TokenKind::kName) return take().text;
  report(peek(), fmt::format("expected {}, found {}", what, shown(peek())), "");
  return {};
}

std::int64_t Cursor::expect_integer(std::string_view what, std::int64_t low, std::int64_t high) {
  const bool negative = take_if('-');
  const Token token = peek();
  if (token.kind != TokenKind::kInteger) {
    report(token, fmt::format("expected {}, found {}", what, shown(token)), "a whole number is wanted here");
    return low;
  }
  take();
  const auto bits = static_cast<std::uint64_t>(token.integer);
  const auto value = static_cast<std::int64_t>(negative ? 0 - bits : bits);
  if (value < low || value > high) {
    report(token, fmt::format("{} is {}", what, value), fmt::format("it is from {} to {}", low, high));
    return low;
  }
  return value;
}

void Cursor::skip_to(char mark) {
  while (!at_end() && !peek().is(mark)) take();
  expect(mark, "at the end of this statement");
}

void Cursor::skip_line(int line) {
  while (!at_end() && peek().place.line == line) take();
}

void Cursor::skip_block() {
  while (!at_end() && !peek().is('{')) take();
  skip_nested('{', '}');
}

void Cursor::skip_parentheses() { skip_nested('(', ')'); }

void Cursor::skip_nested(char open, char close) {
  const Token start = peek();
  int depth = 0;
  do {
    if (at_end()) return report(start, fmt::format("this \"{}\" is not closed", open), "");
    if (peek().is(open)) ++depth;
    if (peek().is(close)) --depth;
    take();
  } while (depth > 0);
}

void Cursor::report(const Token& at, std::string message, std::string hint, std::string code) {
  if (mistake_) return;
  mistake_ = mistake_at(text_, file_, at.place, std::move(code), std::move(message), std::move(hint), at.text.size());
}

}  // namespace tangram::ptx
