#include "tangram/picture/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tangram/base/assert.hpp"

namespace tangram::picture {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// What begins a text: a character, its bytes and whether XML 1.0 (section 2.2) has a place for it.
struct Character {
  std::string_view bytes;
  bool is_allowed = false;
};

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

bool is_allowed(std::uint32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  const bool is_control = code >= 0x7F && code < 0xA0;
  return !is_control && !is_surrogate && code != 0xFFFE && code != 0xFFFF && code <= 0x10FFFF;
}

/// A byte that begins no character of UTF-8 (RFC 3629) is one that is not allowed.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return {text.substr(0, 1), false};
  if (length == 1) return {text.substr(0, 1), is_allowed(lead)};
  std::uint32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return {text.substr(0, 1), false};
    code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  const bool is_shortest = code >= (length == 2 ? 0x80U : length == 3 ? 0x800U : 0x10000U);
  if (!is_shortest) return {text.substr(0, 1), false};
  return {text.substr(0, length), is_allowed(code)};
}

std::string_view reference_of(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
  }
}

/// Elements that HTML has no end tag of, and shapes of SVG.
bool ends_itself(std::string_view name) {
  constexpr std::string_view kNames[] = {"meta", "rect", "path", "line"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

}  // namespace

std::string escaped(std::string_view plain) {
  std::string out;
  out.reserve(plain.size());
  while (!plain.empty()) {
    const Character next = first_of(plain);
    plain.remove_prefix(next.bytes.size());
    const std::string_view reference = next.bytes.size() == 1 ? reference_of(next.bytes.front()) : std::string_view();
    out += !next.is_allowed ? kReplacement : reference.empty() ? next.bytes : reference;
  }
  return out;
}

std::string number(double value) {
  TANGRAM_ASSERT(std::isfinite(value));
  std::string out = fmt::format("{:.2f}", value);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

Attribute::Attribute(std::string_view name, double value) : name_(name), value_(number(value)) {}

Markup text(std::string_view plain) { return Markup(escaped(plain)); }

Markup element(std::string_view name, std::vector<Attribute> attributes, const Markup& content) {
  std::string out = fmt::format("<{}", name);
  for (const Attribute& attribute : attributes) {
    if (!attribute.value().empty()) out += fmt::format(" {}=\"{}\"", attribute.name(), escaped(attribute.value()));
  }
  if (content.empty() && ends_itself(name)) return Markup(out + "/>");
  return Markup(fmt::format("{}>{}</{}>", out, content.html(), name));
}

Markup element(std::string_view name, std::vector<Attribute> attributes, std::string_view plain) {
  return element(name, std::move(attributes), text(plain));
}

}  // namespace tangram::picture
