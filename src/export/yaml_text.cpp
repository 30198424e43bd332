#include "yaml_text.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace tangram::exporting {

namespace {

using Json = nlohmann::ordered_json;

bool is_plain(const std::string& text) {
  constexpr std::string_view kFirst = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/._$";
  constexpr std::string_view kRest = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-${}";
  if (text.empty() || kFirst.find(text.front()) == std::string::npos) return false;
  if (text.find_first_not_of(kRest) != std::string::npos) return false;
  // Words that some YAML reader takes for a boolean, a null or a number.
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::array<std::string_view, 12> kWords{"true", "false", "yes", "no",   "on",   "off",
                                                    "null", "y",     "n",   ".inf", ".nan", "."};
  const bool number = text.front() == '.' && text.find_first_of("0123456789") == 1;
  return !number && std::ranges::find(kWords, lower) == kWords.end();
}

std::string scalar(const Json& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) return value.get<std::string>();
  return value.dump();
}

bool is_inline(const Json& value) {
  if (!value.is_structured()) return true;
  if (value.empty()) return true;
  return value.is_array() && std::ranges::all_of(value, is_inline) &&
         std::ranges::none_of(value, [](const Json& item) { return item.is_object() && !item.empty(); });
}

std::string inline_text(const Json& value) {
  if (value.is_object()) return "{}";
  if (!value.is_array()) return scalar(value);
  std::string text;
  for (const Json& item : value) text += (text.empty() ? "" : ", ") + inline_text(item);
  return "[" + text + "]";
}

void put(const Json& value, std::size_t indent, std::string& out);

void put_members(const Json& object, std::size_t indent, bool first_is_placed, std::string& out) {
  for (const auto& [key, item] : object.items()) {
    if (!first_is_placed) out += std::string(indent, ' ');
    first_is_placed = false;
    out += scalar(Json(key)) + ":";
    if (is_inline(item)) {
      out += " " + inline_text(item) + "\n";
    } else {
      out += "\n";
      put(item, indent + 2, out);
    }
  }
}

void put(const Json& value, std::size_t indent, std::string& out) {
  if (value.is_object()) return put_members(value, indent, false, out);
  for (const Json& item : value) {
    out += std::string(indent, ' ') + "- ";
    if (is_inline(item)) {
      out += inline_text(item) + "\n";
    } else if (item.is_object()) {
      put_members(item, indent + 2, true, out);
    } else {
      out += "\n";
      put(item, indent + 2, out);
    }
  }
}

}  // namespace

std::string yaml_text(const Json& value) {
  if (is_inline(value)) return inline_text(value) + "\n";
  std::string out;
  put(value, 0, out);
  return out;
}

}  // namespace tangram::exporting
