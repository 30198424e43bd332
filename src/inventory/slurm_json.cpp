// `scontrol show nodes --json`: {"nodes": [{"name", "state", "gres", "reason", "partitions", ...}], ...}. Versions
// before 23.02 give one word of state in small letters and the rest under "state_flags"; later ones a list of all.
#include <fmt/format.h>

#include "slurm_node.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::inventory {
namespace {

Diagnostic wrong_type(const io::Document& document, const io::Node& at, std::string_view key, std::string_view wanted) {
  return error_at(document, at, "wrong-type",
                  fmt::format("\"{}\": expected {}, got {}", key, wanted, io::to_string(at.kind)));
}

/// A list of strings, or one; nothing where the key is not there.
std::vector<Text> texts_at(const io::Document& document, const io::Node& node, std::string_view key,
                           Collector& collector) {
  const io::Node* value = node.find(key);
  if (value == nullptr || value->kind == io::NodeKind::kNull) return {};
  if (value->kind == io::NodeKind::kString) return {text_of(*value)};
  std::vector<Text> texts;
  if (value->kind != io::NodeKind::kArray) {
    collector.add_error(wrong_type(document, *value, key, "a string or an array of strings"));
    return {};
  }
  for (const io::Node& item : value->items) {
    if (item.kind == io::NodeKind::kString) {
      texts.push_back(text_of(item));
    } else {
      collector.add_error(wrong_type(document, item, key, "a string"));
    }
  }
  return texts;
}

Text text_at(const io::Document& document, const io::Node& node, std::string_view key, Collector& collector) {
  const io::Node* value = node.find(key);
  if (value == nullptr || value->kind == io::NodeKind::kNull) return {};
  if (value->kind == io::NodeKind::kString) return text_of(*value);
  collector.add_error(wrong_type(document, *value, key, "a string"));
  return {};
}

void missing(const io::Document& document, const io::Node& node, std::string_view key, Collector& collector) {
  collector.add_error(error_at(document, node, "missing-key", fmt::format("a node without \"{}\"", key),
                               "give what scontrol show nodes --json prints, whole"));
}

void read_node(const io::Document& document, const io::Node& node, Collector& collector) {
  if (node.kind != io::NodeKind::kObject) {
    return collector.add_error(wrong_type(document, node, "nodes", "an object"));
  }
  SlurmNode slurm;
  slurm.name = text_at(document, node, "name", collector);
  if (node.find("name") == nullptr) return missing(document, node, "name", collector);
  if (slurm.name.line == 0) return;  // reported
  slurm.states = texts_at(document, node, "state", collector);
  if (node.find("state") == nullptr) return missing(document, node, "state", collector);
  for (Text& flag : texts_at(document, node, "state_flags", collector)) slurm.states.push_back(std::move(flag));
  slurm.gres = text_at(document, node, "gres", collector);
  slurm.reason = text_at(document, node, "reason", collector).value;
  for (const Text& name : texts_at(document, node, "partitions", collector)) slurm.partitions.push_back(name.value);
  take_slurm_node(document, slurm, collector);
}

}  // namespace

void read_slurm_json(const io::Document& document, Collector& collector) {
  const io::Node* nodes = document.root.find("nodes");
  if (nodes == nullptr) {
    return collector.add_error(error_at(document, document.root, "missing-key", "no \"nodes\" in it",
                                        "give what scontrol show nodes --json prints"));
  }
  if (nodes->kind != io::NodeKind::kArray) {
    return collector.add_error(wrong_type(document, *nodes, "nodes", "an array"));
  }
  for (const io::Node& node : nodes->items) read_node(document, node, collector);
}

}  // namespace tangram::inventory
