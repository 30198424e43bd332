#include "tokens.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <optional>
#include <utility>

namespace tangram::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool continues_name(char c) { return begins_name(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f'; }

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Expected<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (!mistake_) {
      const std::size_t before = position_;
      skip_spaces();
      if (mistake_) break;
      const bool apart = position_ > before;
      Token token = next();
      token.after_space = apart;
      tokens.push_back(token);
      if (token.kind == TokenKind::kEnd) break;
    }
    if (mistake_) return fail(*std::move(mistake_));
    return tokens;
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  [[nodiscard]] int column_of(std::size_t position) const { return static_cast<int>(position - line_start_) + 1; }
  [[nodiscard]] Place place() const { return {line_, column_of(position_)}; }

  void advance() {
    if (text_[position_++] == '\n') {
      ++line_;
      line_start_ = position_;
    }
  }

  void stop(Place at, std::string message, std::string hint) {
    if (!mistake_) mistake_ = mistake_at(text_, file_, at, "bad-ptx", std::move(message), std::move(hint));
  }

  void skip_line() {
    while (position_ < text_.size() && peek() != '\n') advance();
  }

  void skip_block_comment() {
    const Place start = place();
    advance();
    advance();
    while (position_ < text_.size() && !(peek() == '*' && peek(1) == '/')) advance();
    if (position_ >= text_.size()) return stop(start, "this comment does not end", "close it with */");
    advance();
    advance();
  }

  void skip_spaces() {
    while (position_ < text_.size() && !mistake_) {
      if (is_space(peek())) {
        advance();
      } else if (peek() == '/' && peek(1) == '/') {
        skip_line();
      } else if (peek() == '/' && peek(1) == '*') {
        skip_block_comment();
      } else if (peek() == '#' && column_of(position_) == 1) {
        skip_line();
      } else {
        return;
      }
    }
  }

  Token next() {
    Token token;
    token.place = place();
    if (position_ >= text_.size()) return token;
    const char c = peek();
    if (begins_name(c)) return name(token);
    if (c == '.' && continues_name(peek(1))) return directive(token);
    if (is_digit(c)) return number(token);
    if (c == '"') return quoted(token);
    return mark(token);
  }

  void skip_name() {
    while (continues_name(peek())) ++position_;
  }

  Token name(Token token) {
    const std::size_t start = position_;
    skip_name();
    token.kind = TokenKind::kName;
    token.text = text_.substr(start, position_ - start);
    return token;
  }

  /// .global, .2d, .shared::cluster, .L2::128B
  Token directive(Token token) {
    const std::size_t start = ++position_;
    skip_name();
    while (peek() == ':' && peek(1) == ':' && continues_name(peek(2))) {
      position_ += 2;
      skip_name();
    }
    token.kind = TokenKind::kDot;
    token.text = text_.substr(start, position_ - start);
    return token;
  }

  Token quoted(Token token) {
    advance();
    const std::size_t start = position_;
    while (position_ < text_.size() && peek() != '"' && peek() != '\n') {
      if (peek() == '\\' && position_ + 1 < text_.size()) advance();
      advance();
    }
    token.kind = TokenKind::kString;
    token.text = text_.substr(start, position_ - start);
    if (peek() != '"') {
      stop(token.place, "this string does not end on its line", "close it with \"");
    } else {
      advance();
    }
    return token;
  }

  Token mark(Token token) {
    token.kind = TokenKind::kMark;
    const std::size_t length = peek() == ':' && peek(1) == ':' ? 2 : 1;
    token.text = text_.substr(position_, length);
    constexpr std::string_view kMarks = "[](){}<>,;:|+-*!~=&@^?/%.";
    if (kMarks.find(peek()) == std::string_view::npos) {
      stop(token.place, "this character has no meaning in PTX", "give the text that the compiler wrote");
      return token;
    }
    position_ += length;
    return token;
  }

  Token number(Token token) {
    const std::size_t start = position_;
    while (continues_name(peek()) || (peek() == '.' && is_digit(peek(1))) || is_exponent_sign(start)) ++position_;
    if (peek() == '.' && !begins_name(peek(1))) ++position_;  // "1."
    token.text = text_.substr(start, position_ - start);
    if (!read_integer(token) && !read_float(token)) {
      stop(token.place, fmt::format("\"{}\" is no number", token.text),
           "write 12, 0x1F, 017, 0b101, 1.5, 0f3F800000 or 0d3FF0000000000000");
    }
    return token;
  }

  [[nodiscard]] bool is_exponent_sign(std::size_t start) const {
    if (peek() != '-' && peek() != '+') return false;
    const std::string_view before = text_.substr(start, position_ - start);
    const bool decimal = before.size() > 1 && before.find_first_not_of("0123456789.eE") == std::string_view::npos;
    return decimal && (before.back() == 'e' || before.back() == 'E') && is_digit(peek(1));
  }

  static std::optional<std::uint64_t> digits(std::string_view text, int base) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
  }

  static bool read_integer(Token& token) {
    std::string_view text = token.text;
    if (text.ends_with('U') || text.ends_with('u')) text.remove_suffix(1);
    std::optional<std::uint64_t> value;
    if (text.starts_with("0x") || text.starts_with("0X")) {
      value = digits(text.substr(2), 16);
    } else if (text.starts_with("0b") || text.starts_with("0B")) {
      value = digits(text.substr(2), 2);
    } else if (text.size() > 1 && text[0] == '0') {
      value = digits(text.substr(1), 8);
    } else {
      value = digits(text, 10);
    }
    if (!value) return false;
    token.kind = TokenKind::kInteger;
    token.integer = static_cast<std::int64_t>(*value);
    return true;
  }

  static bool read_float(Token& token) {
    token.kind = TokenKind::kFloat;
    const std::string_view text = token.text;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F' || text[1] == 'd' || text[1] == 'D')) {
      token.single = text[1] == 'f' || text[1] == 'F';
      const auto bits = text.size() == (token.single ? 10U : 18U) ? digits(text.substr(2), 16) : std::nullopt;
      token.integer = static_cast<std::int64_t>(bits.value_or(0));
      return bits.has_value();
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    token.integer = std::bit_cast<std::int64_t>(value);
    return error == std::errc() && end == text.data() + text.size();
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t position_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  std::optional<Diagnostic> mistake_;
};

}  // namespace

std::string line_of(std::string_view text, int line) {
  std::size_t start = 0;
  for (int number = 1; number < line && start != std::string_view::npos; ++number) {
    start = text.find('\n', start);
    if (start != std::string_view::npos) ++start;
  }
  if (start == std::string_view::npos) return {};
  return std::string(text.substr(start, text.find('\n', start) - start));
}

Diagnostic mistake_at(std::string_view text, const std::string& file, Place place, std::string code,
                      std::string message, std::string hint, std::size_t length) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where = {file, place.line, place.column};
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  diagnostic.source_line = line_of(text, place.line);
  diagnostic.length = static_cast<int>(length == 0 ? 1 : length);
  return diagnostic;
}

Expected<std::vector<Token>> tokens_of(std::string_view text, const std::string& file) {
  return Lexer(text, file).run();
}

}  // namespace tangram::ptx
