#include "lists.hpp"

#include <fmt/format.h>

#include "text.hpp"

namespace tangram::importing {

std::optional<io::Document> parse_job(const std::vector<const SourceFile*>& files, Diagnostics& sink) {
  if (files.size() != 1) {
    Place place = files.empty() ? Place{} : place_of(*files[1]);
    sink.push_back(at(std::move(place), files.empty() ? "no-plan" : "several-plans",
                      files.empty() ? "no file is a plan" : "this is a second plan",
                      "give one plan, and the host file or the rank map that belongs to it"));
    return std::nullopt;
  }
  auto document = io::parse_json(files.front()->text, files.front()->path);
  if (document) return std::move(*document);
  sink.insert(sink.end(), document.error().begin(), document.error().end());
  return std::nullopt;
}

Place Lists::place(const io::Node& node) const { return place_of(*document_, node); }

void Lists::complain(const io::Node& node, std::string code, std::string message, std::string hint) {
  sink_->push_back(at(place(node), std::move(code), std::move(message), std::move(hint)));
}

const io::Node* Lists::member(const io::Node& object, const std::string& key, const std::string& hint) {
  const io::Node* found = object.find(key);
  if (found == nullptr) complain(object, "missing-key", fmt::format("\"{}\" is missing", key), hint);
  return found;
}

const std::vector<io::Node>& Lists::items(const io::Node* list, const std::string& what) {
  static const std::vector<io::Node> kNone;
  if (list == nullptr) return kNone;
  if (list->kind == io::NodeKind::kArray && !list->items.empty()) return list->items;
  complain(*list, "wrong-type", fmt::format("{} is a list, here is {}", what, io::to_string(list->kind)));
  return kNone;
}

std::int64_t Lists::count(const io::Node& node, io::IntegerRange range) {
  if (node.kind == io::NodeKind::kInteger && node.integer >= range.min && node.integer <= range.max)
    return node.integer;
  complain(node, "not-a-count", fmt::format("a whole number from {} to {} was expected", range.min, range.max));
  return 1;
}

std::vector<std::int64_t> Lists::counts(const io::Node* list, const std::string& what, io::IntegerRange range) {
  std::vector<std::int64_t> values;
  for (const io::Node& item : items(list, what)) values.push_back(count(item, range));
  return values;
}

}  // namespace tangram::importing
