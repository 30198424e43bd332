#include "tangram/io/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "number_text.hpp"
#include "tangram/base/spelling.hpp"
#include "tree_builder.hpp"
#include "unit_suffix.hpp"

namespace tangram::io {

namespace {

std::string quoted_list(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  quoted.reserve(words.size());
  for (const std::string& word : words) quoted.push_back(fmt::format("\"{}\"", word));
  return fmt::format("{}", fmt::join(quoted, ", "));
}

std::int64_t nearest_to_one(const IntegerRange& range) { return std::clamp<std::int64_t>(1, range.min, range.max); }

double nearest_to_one(const NumberRange& range) { return std::clamp(1.0, range.min, range.max); }

bool is_number(const Node& node) { return node.kind == NodeKind::kInteger || node.kind == NodeKind::kNumber; }

// What to write instead, when the text or the number almost is what the key wants.
std::string number_hint(std::string_view key, const Node& node, bool whole) {
  if (whole && node.kind == NodeKind::kNumber && std::abs(node.number) < 1e15 &&
      std::trunc(node.number) == node.number) {
    return fmt::format("write {:.0f}", node.number);
  }
  if (node.kind != NodeKind::kString) return {};
  const std::size_t length = json_number_length(node.text);
  if (length == 0) return {};
  if (length == node.text.size()) return fmt::format("write {} without quotes", node.text);
  const std::string_view unit = split_unit(key).unit;
  const std::string reason = unit.empty() ? "" : fmt::format(", in {}", unit);
  return fmt::format("write the number alone{}", reason);
}

}  // namespace

ObjectReader::ObjectReader(const Document& document, const Node& node, std::string pointer, Diagnostics& sink)
    : document_(&document), node_(&node), pointer_(std::move(pointer)), sink_(&sink) {
  valid_ = node.kind == NodeKind::kObject;
  if (!valid_) error_at(node, pointer_, "wrong-type", fmt::format("expected an object, got {}", to_string(node.kind)));
}

bool ObjectReader::has(std::string_view key) const { return valid_ && node_->find(key) != nullptr; }

std::string ObjectReader::child_pointer(std::string_view key) const {
  std::string result = pointer_;
  append_pointer(result, key);
  return result;
}

const Node* ObjectReader::take(std::string_view key) {
  if (!valid_) return nullptr;
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  return node_->find(key);
}

const Node* ObjectReader::require(std::string_view key) {
  const Node* node = take(key);
  if (node == nullptr && valid_) {
    missing_.emplace_back(key);
    error_at(*node_, pointer_, "missing-key", fmt::format("missing key \"{}\"", key));
  }
  return node;
}

const Node* ObjectReader::raw(std::string_view key) { return take(key); }

void ObjectReader::ignore(std::string_view key) { take(key); }

void ObjectReader::wrong_type(std::string_view key, const Node& node, std::string_view wanted, std::string hint) {
  error_at(node, child_pointer(key), "wrong-type", fmt::format("expected {}, got {}", wanted, to_string(node.kind)),
           std::move(hint));
}

std::optional<std::int64_t> ObjectReader::integer_of(std::string_view key, const Node& node, IntegerRange range) {
  if (node.kind != NodeKind::kInteger) {
    wrong_type(key, node, "an integer", number_hint(key, node, true));
    return std::nullopt;
  }
  if (node.integer >= range.min && node.integer <= range.max) return node.integer;
  const bool low = node.integer < range.min;
  error_at(node, child_pointer(key), "out-of-range",
           fmt::format("\"{}\" must be {} {}, got {}", key, low ? "at least" : "at most", low ? range.min : range.max,
                       node.text),
           low ? std::string() : std::string(range.why));  // a count that is too small needs no reason
  return std::nullopt;
}

std::optional<double> ObjectReader::number_of(std::string_view key, const Node& node, NumberRange range) {
  if (!is_number(node)) {
    wrong_type(key, node, "a number", number_hint(key, node, false));
    return std::nullopt;
  }
  const bool low = range.is_low(node.number);
  if (!low && node.number <= range.max) return node.number;
  const std::string_view relation = low ? range.lower_relation() : "at most";
  error_at(node, child_pointer(key), "out-of-range",
           fmt::format("\"{}\" must be {} {}, got {}", key, relation, low ? range.min : range.max, node.text),
           std::string(range.why));
  return std::nullopt;
}

std::optional<bool> ObjectReader::boolean_of(std::string_view key, const Node& node) {
  if (node.kind == NodeKind::kBoolean) return node.boolean;
  const bool yes = node.text == "yes" || node.text == "on" || node.text == "true";
  const bool no = node.text == "no" || node.text == "off" || node.text == "false";
  wrong_type(key, node, "a boolean", yes ? "write true" : no ? "write false" : "");
  return std::nullopt;
}

std::optional<std::string> ObjectReader::string_of(std::string_view key, const Node& node) {
  if (node.kind == NodeKind::kString) return node.text;
  wrong_type(key, node, "a string", is_number(node) ? fmt::format("write \"{}\"", node.text) : std::string());
  return std::nullopt;
}

std::int64_t ObjectReader::integer(std::string_view key, IntegerRange range) {
  const Node* node = require(key);
  return (node == nullptr ? std::nullopt : integer_of(key, *node, range)).value_or(nearest_to_one(range));
}

double ObjectReader::number(std::string_view key, NumberRange range) {
  const Node* node = require(key);
  return (node == nullptr ? std::nullopt : number_of(key, *node, range)).value_or(nearest_to_one(range));
}

bool ObjectReader::boolean(std::string_view key) {
  const Node* node = require(key);
  return (node == nullptr ? std::nullopt : boolean_of(key, *node)).value_or(false);
}

std::string ObjectReader::string(std::string_view key) {
  const Node* node = require(key);
  std::string result = (node == nullptr ? std::nullopt : string_of(key, *node)).value_or(std::string());
  if (node != nullptr && node->kind == NodeKind::kString && result.empty()) {
    error_at(*node, child_pointer(key), "out-of-range", fmt::format("\"{}\" must not be empty", key));
  }
  return result;
}

std::optional<std::int64_t> ObjectReader::integer_if(std::string_view key, IntegerRange range) {
  const Node* node = take(key);
  return node == nullptr ? std::nullopt : integer_of(key, *node, range);
}

std::optional<double> ObjectReader::number_if(std::string_view key, NumberRange range) {
  const Node* node = take(key);
  return node == nullptr ? std::nullopt : number_of(key, *node, range);
}

std::int64_t ObjectReader::integer_or(std::string_view key, std::int64_t fallback, IntegerRange range) {
  return integer_if(key, range).value_or(fallback);
}

double ObjectReader::number_or(std::string_view key, double fallback, NumberRange range) {
  return number_if(key, range).value_or(fallback);
}

bool ObjectReader::boolean_or(std::string_view key, bool fallback) {
  const Node* node = take(key);
  return node == nullptr ? fallback : boolean_of(key, *node).value_or(fallback);
}

std::string ObjectReader::string_or(std::string_view key, std::string fallback) {
  const Node* node = take(key);
  if (node == nullptr) return fallback;
  return string_of(key, *node).value_or(std::move(fallback));
}

int ObjectReader::choice_index(std::string_view key, const std::vector<std::string>& names, bool required) {
  const Node* node = required ? require(key) : take(key);
  if (node == nullptr) return -1;
  // A name may look like a number (`zero: 1`): the text as written decides.
  const bool scalar = node->kind == NodeKind::kString || is_number(*node);
  if (!scalar) {
    wrong_type(key, *node, "a string", fmt::format("one of {}", quoted_list(names)));
    return -1;
  }
  const auto found = std::find(names.begin(), names.end(), node->text);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const auto near = closest(node->text, names);
  error_at(*node, child_pointer(key), "unknown-value", fmt::format("unknown value \"{}\" for \"{}\"", node->text, key),
           near ? fmt::format("did you mean \"{}\"?", *near) : fmt::format("one of {}", quoted_list(names)));
  return -1;
}

std::optional<ObjectReader> ObjectReader::object_of(std::string_view key, const Node* node) {
  if (node == nullptr) return std::nullopt;
  ObjectReader child(*document_, *node, child_pointer(key), *sink_);
  if (!child.valid()) return std::nullopt;
  return child;
}

std::optional<ObjectReader> ObjectReader::object(std::string_view key) { return object_of(key, require(key)); }

std::optional<ObjectReader> ObjectReader::object_if(std::string_view key) { return object_of(key, take(key)); }

std::vector<ObjectReader> ObjectReader::objects_of(std::string_view key, const Node* node) {
  std::vector<ObjectReader> result;
  if (node == nullptr) return result;
  if (node->kind != NodeKind::kArray) {
    wrong_type(key, *node, "an array of objects", node->kind == NodeKind::kObject ? "write [ { ... } ]" : "");
    return result;
  }
  const std::string base = child_pointer(key);
  result.reserve(node->items.size());
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    result.emplace_back(*document_, node->items[i], fmt::format("{}/{}", base, i), *sink_);
  }
  return result;
}

std::vector<ObjectReader> ObjectReader::objects(std::string_view key) {
  const Node* node = require(key);
  if (node != nullptr && node->kind == NodeKind::kArray && node->items.empty()) {
    error_at(*node, child_pointer(key), "out-of-range", fmt::format("\"{}\" must hold at least one object", key));
  }
  return objects_of(key, node);
}

std::vector<ObjectReader> ObjectReader::objects_if(std::string_view key) { return objects_of(key, take(key)); }

std::vector<std::string> ObjectReader::strings_if(std::string_view key) {
  std::vector<std::string> result;
  const Node* node = take(key);
  if (node == nullptr) return result;
  if (node->kind == NodeKind::kString) return {node->text};
  if (node->kind != NodeKind::kArray) {
    wrong_type(key, *node, "an array of strings", {});
    return result;
  }
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const Node& item = node->items[i];
    if (item.kind == NodeKind::kString) {
      result.push_back(item.text);
    } else {
      error_at(item, fmt::format("{}/{}", child_pointer(key), i), "wrong-type",
               fmt::format("expected a string, got {}", to_string(item.kind)));
    }
  }
  return result;
}

std::vector<std::pair<std::string, ObjectReader>> ObjectReader::object_members(std::string_view key) {
  std::vector<std::pair<std::string, ObjectReader>> result;
  const auto map = object_if(key);
  if (!map) return result;
  for (const Member& member : map->node().members) {
    result.emplace_back(member.key, ObjectReader(*document_, member.value, map->child_pointer(member.key), *sink_));
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> ObjectReader::string_members(std::string_view key) {
  std::vector<std::pair<std::string, std::string>> result;
  auto map = object_if(key);
  if (!map) return result;
  for (const Member& member : map->node().members) {
    if (auto text = map->string_of(member.key, member.value)) result.emplace_back(member.key, *std::move(text));
  }
  return result;
}

void ObjectReader::error_at(std::string_view key, std::string code, std::string message, std::string hint) {
  const Node* node = valid_ ? node_->find(key) : nullptr;
  error_at(node != nullptr ? *node : *node_, node != nullptr ? child_pointer(key) : pointer_, std::move(code),
           std::move(message), std::move(hint));
}

void ObjectReader::error_at(const Node& at, std::string pointer, std::string code, std::string message,
                            std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where = {document_->file, at.line, at.column};
  diagnostic.pointer = std::move(pointer);
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  // Later ones are only counted, and finding a line costs a pass over the text.
  if (sink_->size() < kMaxDiagnostics) diagnostic.source_line = document_->line_text(at.line);
  diagnostic.length = at.length;
  sink_->push_back(std::move(diagnostic));
}

void ObjectReader::finish() {
  if (!valid_) return;
  for (const Member& member : node_->members) {
    if (std::find(asked_.begin(), asked_.end(), member.key) == asked_.end()) report_unknown(member);
  }
}

void ObjectReader::also_called(std::string_view key, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) also_called_.emplace_back(word, key);
}

std::optional<std::string> ObjectReader::meant_by(std::string_view word, const std::vector<std::string>& keys) const {
  for (const auto& [name, key] : also_called_) {
    if (name == word && std::find(keys.begin(), keys.end(), key) != keys.end()) return std::string(key);
  }
  return closest(word, keys);
}

void ObjectReader::report_unknown(const Member& member) {
  Node at;
  at.line = member.line;
  at.column = member.column;
  at.length = member.length;
  std::vector<std::string> absent;
  for (const std::string& key : asked_) {
    if (node_->find(key) == nullptr) absent.push_back(key);
  }
  if (const auto meant = same_but_for_unit(member.key, absent)) {
    forgive_missing(*meant);
    const bool has_unit = !split_unit(member.key).unit.empty();
    error_at(at, child_pointer(member.key), "wrong-unit",
             fmt::format("\"{}\" has {}", member.key, has_unit ? "the wrong unit" : "no unit"),
             fmt::format("give it in {}, as \"{}\"", split_unit(*meant).unit, *meant));
    return;
  }
  const auto near = meant_by(member.key, absent);
  if (near) forgive_missing(*near);
  std::string hint = "no keys are known here";
  if (near) {
    hint = fmt::format("did you mean \"{}\"?", *near);
  } else if (!asked_.empty()) {
    hint = fmt::format("known keys: {}", fmt::join(asked_, ", "));
  }
  error_at(at, child_pointer(member.key), "unknown-key", fmt::format("unknown key \"{}\"", member.key),
           std::move(hint));
}

void ObjectReader::forgive_missing(const std::string& key) {
  if (std::find(missing_.begin(), missing_.end(), key) == missing_.end()) return;
  const std::string message = fmt::format("missing key \"{}\"", key);
  std::erase_if(*sink_, [&](const Diagnostic& d) {
    return d.code == "missing-key" && d.pointer == pointer_ && d.where.file == document_->file && d.message == message;
  });
}

}  // namespace tangram::io
