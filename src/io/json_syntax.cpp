#include "json_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "number_text.hpp"

namespace tangram::io {

namespace {

constexpr char kEnd = '\0';  // cannot occur in a checked text
constexpr std::string_view kBlanks = " \t\r\n";

char char_at(std::string_view text, std::size_t i) { return i < text.size() ? text[i] : kEnd; }

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '+' || c == '-' || c == '.';
}

bool looks_numeric(std::string_view word) {
  const std::size_t digit = word.find_first_not_of("+-.");
  return digit != std::string_view::npos ? word[digit] >= '0' && word[digit] <= '9' : !word.empty();
}

std::size_t word_length(std::string_view text, std::size_t i) {
  std::size_t end = i;
  while (end < text.size() && is_word(text[end])) ++end;
  return end - i;
}

// Bytes of the UTF-8 character at i.
std::size_t character_length(std::string_view text, std::size_t i) {
  std::size_t end = i + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
  return end - i;
}

std::optional<unsigned> parse_hex(std::string_view text, std::size_t i) {
  unsigned value = 0;
  if (i + 4 > text.size()) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 4, value, 16);
  if (error != std::errc() || end != text.data() + i + 4) return std::nullopt;
  return value;
}

struct Finding {
  Span span;
  std::string message;
  std::string hint;
};

class Explainer {
 public:
  Explainer(std::string_view text, const JsonFailure& failure) : text_(text), failure_(failure) {}

  Finding explain() {
    at_ = failure_.accepted;
    if (at_ > 0 && is_word(text_[at_ - 1]) && is_word(char_at(text_, at_))) return split_word();
    if (auto comment = skip_blanks()) return *comment;
    switch (failure_.state) {
      case JsonState::kStart: return value("a value");
      case JsonState::kObjectStart: return key("a key or \"}\"");
      case JsonState::kArrayStart: return value("a value or \"]\"");
      case JsonState::kKey: return after_key();
      case JsonState::kMember: return after_member('}', "\",\" or \"}\"");
      case JsonState::kItem: return after_member(']', "\",\" or \"]\"");
      case JsonState::kEnd: return {{at_, token_length()}, "unexpected text after the end of the document", {}};
    }
    return unknown();
  }

 private:
  // The parser takes the "0" of "01", or the "true" of "truer", for a token of its own.
  Finding split_word() {
    while (at_ > 0 && is_word(text_[at_ - 1])) --at_;
    return word();
  }

  std::optional<Finding> skip_blanks() {
    at_ = skip_json_blanks(text_, at_);
    if (text_.substr(at_).starts_with("/*")) return Finding{{at_, 2}, "the comment is not closed", "end it with */"};
    return std::nullopt;
  }

  Finding after_key() {
    if (char_at(text_, at_) != ':') return expected("\":\" after the key");
    ++at_;
    if (auto comment = skip_blanks()) return *comment;
    return value("a value");
  }

  Finding after_member(char closing, std::string_view wanted) {
    if (char_at(text_, at_) != ',') {
      Finding finding = expected(wanted);
      if (at_ < text_.size() && finding.hint.empty()) finding.hint = "a comma may be missing before it";
      return finding;
    }
    const std::size_t comma = at_++;
    if (auto comment = skip_blanks()) return *comment;
    if (char_at(text_, at_) == closing) {
      return {{comma, 1}, fmt::format("trailing comma before \"{}\"", closing), "remove the comma"};
    }
    return closing == '}' ? key("a key") : value("a value");
  }

  Finding key(std::string_view wanted) {
    const char c = char_at(text_, at_);
    if (c == '"') return string();
    if (c == '\'') return single_quotes();
    if (!is_word(c)) return expected(wanted);
    const std::size_t length = word_length(text_, at_);
    return {{at_, length}, "a key needs double quotes", fmt::format("write \"{}\"", text_.substr(at_, length))};
  }

  Finding value(std::string_view wanted) {
    const char c = char_at(text_, at_);
    if (c == '"') return string();
    if (c == '\'') return single_quotes();
    if (is_word(c)) return word();
    return expected(wanted);
  }

  Finding word() const {
    const std::size_t length = word_length(text_, at_);
    const std::string_view word = text_.substr(at_, length);
    const Span span{at_, length};
    if (looks_numeric(word)) return number(word, span);
    std::string lower(word);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    if (lower == "none" || lower == "nil") lower = "null";
    const bool first = text_.substr(0, at_).find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (first && char_at(text_, at_ + length) == ':') {
      return {span, fmt::format("unknown word \"{}\"", word), "JSON is wanted here; this looks like YAML or a message"};
    }
    const bool known = lower == "true" || lower == "false" || lower == "null";
    return {span, fmt::format("unknown word \"{}\"", word),
            known ? fmt::format("write {}", lower) : std::string("a string needs double quotes")};
  }

  static Finding number(std::string_view word, Span span) {
    if (json_number_length(word) == word.size()) {
      return {span, fmt::format("{} is beyond the range of a number", word), {}};
    }
    const std::string_view digits = word.substr(word.starts_with('-') ? 1 : 0);
    std::string hint = "write it in decimal, like 12, -0.5 or 1e9";
    if (word.starts_with('+')) {
      hint = "leave out the plus sign";
    } else if (digits.starts_with('.')) {
      hint = "write a digit before the point";
    } else if (digits.ends_with('.')) {
      hint = "write a digit behind the point";
    } else if (digits.size() > 1 && digits[0] == '0' && std::isdigit(static_cast<unsigned char>(digits[1])) != 0) {
      hint = "leave out the leading zero";
    }
    return {span, fmt::format("malformed number \"{}\"", word), std::move(hint)};
  }

  Finding single_quotes() const { return {{at_, 1}, "strings need double quotes", "write \" instead of '"}; }

  Finding string() const {
    for (std::size_t i = at_ + 1; i < text_.size();) {
      const char c = text_[i];
      if (c == '"') return unknown();
      if (c == '\n' || c == '\r') return {{at_, i - at_}, "the string is not closed on its line", "end it with \""};
      if (static_cast<unsigned char>(c) < 0x20) {
        const std::string hint = fmt::format("write \\u{:04x}", static_cast<unsigned>(c));
        return {{i, 1}, "control character in a string", hint};
      }
      if (c != '\\') {
        ++i;
        continue;
      }
      std::size_t length = 2;
      if (auto finding = escape(i, length)) return *finding;
      i += length;
    }
    return {{at_, end_of_content(text_) - at_}, "the string is not closed", "end it with \""};
  }

  // The mistake in the escape at i, or nothing; `length` becomes the bytes of a correct one.
  std::optional<Finding> escape(std::size_t i, std::size_t& length) const {
    const char kind = char_at(text_, i + 1);
    if (kind == kEnd) return Finding{{i, 1}, "the string is not closed", "end it with \""};
    if (kind != 'u') {
      if (std::string_view("\"\\/bfnrt").find(kind) != std::string_view::npos) return std::nullopt;
      const std::string shown(text_.substr(i, 1 + character_length(text_, i + 1)));
      return Finding{{i, shown.size()}, fmt::format("unknown escape \"{}\"", shown), "write \\\\ for a backslash"};
    }
    const auto unit = parse_hex(text_, i + 2);
    if (!unit) return Finding{{i, 2}, "\\u needs four hexadecimal digits", {}};
    length = 6;
    if (*unit < 0xD800 || *unit > 0xDFFF) return std::nullopt;
    const bool escaped = char_at(text_, i + 6) == '\\' && char_at(text_, i + 7) == 'u';
    const auto low = escaped ? parse_hex(text_, i + 8) : std::nullopt;
    length = 12;
    if (*unit <= 0xDBFF && low && *low >= 0xDC00 && *low <= 0xDFFF) return std::nullopt;
    return Finding{{i, 6}, "half of a surrogate pair", "write the character itself"};
  }

  Finding expected(std::string_view wanted) const {
    if (at_ >= text_.size()) {
      std::string hint;
      if (failure_.open_line > 0) hint = fmt::format("what is opened at line {} is not closed", failure_.open_line);
      return {{end_of_content(text_), 1}, fmt::format("unexpected end of the text, expected {}", wanted), hint};
    }
    std::string hint;
    if (text_[at_] == '#') hint = "comments start with //";
    return {{at_, token_length()}, fmt::format("expected {}, got {}", wanted, token()), hint};
  }

  std::size_t token_length() const {
    if (is_word(char_at(text_, at_))) return word_length(text_, at_);
    return character_length(text_, at_);
  }

  std::string token() const {
    const char c = text_[at_];
    if (c == '"') return "a string";
    if (is_word(c) && looks_numeric(text_.substr(at_, token_length()))) return "a number";
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "a control character";
    return fmt::format("\"{}\"", text_.substr(at_, token_length()));
  }

  Finding unknown() const {
    const std::size_t at = std::min(failure_.reported, end_of_content(text_));
    return {{at > 0 ? at - 1 : 0, 1}, "this is not JSON", {}};
  }

  std::string_view text_;
  const JsonFailure& failure_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t skip_json_blanks(std::string_view text, std::size_t i) {
  while (i < text.size()) {
    if (kBlanks.find(text[i]) != std::string_view::npos) {
      ++i;
    } else if (text.substr(i).starts_with("//")) {
      i = std::min(text.find_first_of("\r\n", i), text.size());
    } else if (text.substr(i).starts_with("/*")) {
      const std::size_t close = text.find("*/", i + 2);
      if (close == std::string_view::npos) return i;
      i = close + 2;
    } else {
      return i;
    }
  }
  return i;
}

std::size_t skip_json_string(std::string_view text, std::size_t i) {
  ++i;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2U : 1U;
  return std::min(i + 1, text.size());
}

Diagnostic explain_json_failure(const Document& document, const JsonFailure& failure) {
  Finding finding = Explainer(document.text, failure).explain();
  return diagnostic_at(document, finding.span, "syntax", std::move(finding.message), std::move(finding.hint));
}

}  // namespace tangram::io
