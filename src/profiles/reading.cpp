#include "reading.hpp"

#include <charconv>
#include <cmath>
#include <iterator>

#include "tangram/base/at.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::profiles {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

}  // namespace

std::vector<std::string> path_parts(const std::string& path) {
  std::vector<std::string> parts;
  for (std::string& part : split(path, '/')) {
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  return parts;
}

std::string folder_above(const std::string& path, std::size_t up) {
  const std::vector<std::string> parts = path_parts(path);
  return parts.size() > up ? parts[parts.size() - 1 - up] : "";
}

std::string file_name(const std::string& path) { return folder_above(path, 0); }

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Diagnostic error_at(const io::Document& document, const io::Node& node, std::string code, std::string message,
                    std::string hint) {
  Diagnostics sink;
  io::ObjectReader reader(document, document.root, "", sink);
  sink.clear();  // the root need not be an object
  reader.error_at(node, "", std::move(code), std::move(message), std::move(hint));
  return sink.front();
}

Diagnostic error_in(const std::string& file, std::string_view text, int line, std::string code, std::string message,
                    std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where.file = file;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  if (line > 0) {
    diagnostic.where.line = line;
    diagnostic.where.column = 1;
    const std::vector<std::string> lines = lines_of(text);
    if (line <= std::ssize(lines)) {
      diagnostic.source_line = at(lines, line - 1);
      diagnostic.length = std::max(1, static_cast<int>(diagnostic.source_line.size()));
    }
  }
  return diagnostic;
}

Expected<std::vector<double>> numbers(const io::Document& document, const io::Node& node) {
  if (node.kind != io::NodeKind::kArray || node.items.empty()) {
    return fail(error_at(document, node, "wrong-type", "expected an array of numbers"));
  }
  std::vector<double> values;
  for (const io::Node& item : node.items) {
    const bool is_number = item.kind == io::NodeKind::kNumber || item.kind == io::NodeKind::kInteger;
    if (!is_number || item.number < 0)
      return fail(error_at(document, item, "wrong-type", "expected a number, 0 or more"));
    values.push_back(item.number);
  }
  return values;
}

const io::Node* find_path(const io::Node& root, std::initializer_list<std::string_view> keys) {
  const io::Node* node = &root;
  for (const std::string_view key : keys) {
    if (node == nullptr || node->kind != io::NodeKind::kObject) return nullptr;
    node = node->find(key);
  }
  return node;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string line(text.substr(0, end));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::optional<std::string> text_between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t first = text.find(before);
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first + before.size());
  const std::size_t end = after.empty() ? text.size() : text.find(after);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(0, end));
}

}  // namespace tangram::profiles
