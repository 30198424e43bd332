#include "source_text.hpp"

#include <algorithm>
#include <utility>

namespace tangram::io {

namespace {

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

bool is_continuation(std::string_view text, std::size_t i) {
  return i < text.size() && (byte_at(text, i) & 0xC0U) == 0x80U;
}

// Length of the well-formed sequence at i, 0 if there is none (Unicode Standard, table 3-7).
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const unsigned lead = byte_at(text, i);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !is_continuation(text, i + 1)) return 0;
  const unsigned second = byte_at(text, i + 1);
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) {
    const bool overlong = lead == 0xE0 && second < 0xA0;
    const bool surrogate = lead == 0xED && second > 0x9F;
    return !overlong && !surrogate && is_continuation(text, i + 2) ? 3 : 0;
  }
  const bool overlong = lead == 0xF0 && second < 0x90;
  const bool beyond = lead == 0xF4 && second > 0x8F;
  return !overlong && !beyond && is_continuation(text, i + 2) && is_continuation(text, i + 3) ? 4 : 0;
}

}  // namespace

LineIndex::LineIndex(std::string_view text) : starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts_.push_back(i + 1);
  }
}

Place LineIndex::place(Span span) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), span.first);
  const std::size_t start = *(next - 1);
  return {static_cast<int>(next - starts_.begin()), static_cast<int>(span.first - start + 1),
          static_cast<int>(std::max<std::size_t>(1, span.length))};
}

std::string_view line_of(std::string_view text, int line) {
  std::size_t start = 0;
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return {};
    start = end + 1;
  }
  std::string_view result = text.substr(start, text.find('\n', start) - start);
  if (result.ends_with('\r')) result.remove_suffix(1);
  return result;
}

Diagnostic diagnostic_at(const Document& document, Span span, std::string code, std::string message, std::string hint) {
  const Place place = LineIndex(document.text).place(span);
  Diagnostic result;
  result.code = std::move(code);
  result.where = {document.file, place.line, place.column};
  result.message = std::move(message);
  result.hint = std::move(hint);
  result.source_line = document.line_text(place.line);
  result.length = place.length;
  return result;
}

Document make_document(std::string text, std::string file) {
  Document document;
  document.file = file == "-" ? "<stdin>" : std::move(file);
  document.text = std::move(text);
  if (document.text.starts_with("\xEF\xBB\xBF")) document.text.erase(0, 3);
  return document;
}

std::optional<Diagnostic> check_encoding(const Document& document) {
  const std::string_view text = document.text;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\0') {
      return diagnostic_at(document, {i, 1}, "invalid-text", "zero byte in the text", "the file must be UTF-8 text");
    }
    const std::size_t length = sequence_length(text, i);
    if (length == 0) {
      return diagnostic_at(document, {i, 1}, "invalid-text", "invalid UTF-8", "the file must be UTF-8 text");
    }
    i += length;
  }
  return std::nullopt;
}

std::size_t end_of_content(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? 0 : last + 1;
}

}  // namespace tangram::io
