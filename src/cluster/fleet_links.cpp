#include "fleet_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fleet_names.hpp"
#include "fleet_nodes.hpp"
#include "link_values.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::cluster {

namespace {

using LabelValues = std::map<std::string, std::set<std::string>>;

std::string hint_among(const std::string& word, const std::vector<std::string>& known, std::string_view what) {
  if (known.empty()) return fmt::format("no node has {}", what);
  if (const auto near = closest(word, known)) return fmt::format("did you mean \"{}\"?", *near);
  const std::vector<std::string> shown(known.begin(), known.begin() + std::min<std::ptrdiff_t>(5, std::ssize(known)));
  return fmt::format("nodes have \"{}\"{}", fmt::join(shown, "\", \""), shown.size() < known.size() ? ", ..." : "");
}

class RuleReader {
 public:
  RuleReader(io::ObjectReader& reader, const LabelValues& labels) : reader_(reader), labels_(labels) {}

  LinkRule read() {
    LinkRule rule;
    const io::Node* within = reader_.raw("within");
    const io::Node* between = reader_.raw("between");
    if ((within != nullptr) == (between != nullptr)) {
      reader_.error_at("within", "missing-key", "a link needs either \"between\" or \"within\"",
                       "{ \"between\": \"rack\", ... } or { \"within\": \"rack\", ... }");
    } else if (within != nullptr) {
      rule.same = true;
      read_within(*within, rule);
    } else {
      read_between(*between, rule);
    }
    rule.link = read_link(reader_, "bandwidth_gbit_s", kGigabit);
    reader_.finish();
    return rule;
  }

 private:
  // "rack", or { "rack": "r1" }
  void read_within(const io::Node& node, LinkRule& rule) {
    if (!read_key(node, "within", rule)) return;
    if (node.kind != io::NodeKind::kObject) return;
    const io::Node& value = node.members.front().value;
    if (value.kind != io::NodeKind::kString) {
      wrong_type(value, "within", "a label's value");
      return;
    }
    rule.a = rule.b = value.text;
    check_value(value, "within", rule.key);
  }

  // "rack", or { "zone": ["east", "west"] }
  void read_between(const io::Node& node, LinkRule& rule) {
    if (!read_key(node, "between", rule)) return;
    if (node.kind != io::NodeKind::kObject) return;
    const io::Node& pair = node.members.front().value;
    const auto is_string = [](const io::Node& item) { return item.kind == io::NodeKind::kString; };
    if (pair.kind != io::NodeKind::kArray || pair.items.size() != 2 ||
        !std::all_of(pair.items.begin(), pair.items.end(), is_string)) {
      wrong_type(pair, "between", "an array of two of the label's values");
      return;
    }
    // Smaller value first: both directions are one rule with one canonical form.
    const auto [a, b] = std::minmax(pair.items[0].text, pair.items[1].text);
    rule.a = a;
    rule.b = b;
    for (const io::Node& item : pair.items) check_value(item, "between", rule.key);
    if (a == b) {
      reader_.error_at(pair, reader_.pointer() + "/between", "impossible",
                       fmt::format("\"{}\" twice: a link is between two different values", a),
                       fmt::format("write \"within\": {{ \"{}\": \"{}\" }}", rule.key, a));
    }
  }

  bool read_key(const io::Node& node, std::string_view at, LinkRule& rule) {
    if (node.kind == io::NodeKind::kString) {
      rule.key = node.text;
    } else if (node.kind == io::NodeKind::kObject && node.members.size() == 1) {
      rule.key = node.members.front().key;
    } else {
      wrong_type(node, at, "a label, or an object with one label");
      return false;
    }
    if (labels_.contains(rule.key)) return true;
    std::vector<std::string> known;
    for (const auto& [key, values] : labels_) known.push_back(key);
    reader_.error_at(at, "unknown-label", fmt::format("no node has the label \"{}\"", rule.key),
                     hint_among(rule.key, known, "labels"));
    return false;
  }

  void check_value(const io::Node& node, std::string_view at, const std::string& key) {
    const std::set<std::string>& values = labels_.at(key);
    if (values.contains(node.text)) return;
    reader_.error_at(node, fmt::format("{}/{}", reader_.pointer(), at), "unknown-label",
                     fmt::format("no node has \"{}\": \"{}\"", key, node.text),
                     hint_among(node.text, {values.begin(), values.end()}, key));
  }

  void wrong_type(const io::Node& node, std::string_view at, std::string_view wanted) {
    reader_.error_at(node, fmt::format("{}/{}", reader_.pointer(), at), "wrong-type",
                     fmt::format("expected {}", wanted));
  }

  io::ObjectReader& reader_;
  const LabelValues& labels_;
};

// A square table of numbers; null, and the diagonal, is "not measured" (0).
class MatrixReader {
 public:
  MatrixReader(io::ObjectReader& reader, std::string_view key, std::size_t size, io::NumberRange range)
      : reader_(reader), key_(key), size_(size), range_(range) {}

  std::optional<std::vector<double>> read(const io::Node& table) {
    if (!check_length(table, reader_.pointer() + "/" + key_, "rows")) return std::nullopt;
    std::vector<double> values;
    for (std::size_t i = 0; i < size_; ++i) {
      const std::string pointer = fmt::format("{}/{}/{}", reader_.pointer(), key_, i);
      const io::Node& row = table.items[i];
      if (!check_length(row, pointer, "numbers")) return std::nullopt;
      for (std::size_t j = 0; j < size_; ++j) {
        const auto value = read_cell(row.items[j], fmt::format("{}/{}", pointer, j), i == j);
        if (!value) return std::nullopt;
        values.push_back(*value);
      }
    }
    return values;
  }

 private:
  bool check_length(const io::Node& node, const std::string& pointer, std::string_view what) {
    if (node.kind == io::NodeKind::kArray && node.items.size() == size_) return true;
    const std::string got =
        node.kind == io::NodeKind::kArray ? std::to_string(node.items.size()) : std::string(to_string(node.kind));
    reader_.error_at(node, pointer, "wrong-shape",
                     fmt::format("\"{}\" must have as many {} as there are nodes, {}, got {}", key_, what, size_, got));
    return false;
  }

  std::optional<double> read_cell(const io::Node& cell, const std::string& pointer, bool diagonal) {
    if (cell.kind == io::NodeKind::kNull) return 0.0;
    const bool number = cell.kind == io::NodeKind::kInteger || cell.kind == io::NodeKind::kNumber;
    if (number && diagonal && cell.number == 0) return 0.0;
    if (!number || diagonal) {
      reader_.error_at(cell, pointer, "wrong-type",
                       diagonal ? "a node has no link to itself: write 0 or null" : "expected a number or null");
      return std::nullopt;
    }
    const bool low = range_.is_low(cell.number);
    if (low || cell.number > range_.max) {
      reader_.error_at(cell, pointer, "out-of-range",
                       fmt::format("\"{}\" must be {} {:g}, got {}", key_, low ? range_.lower_relation() : "at most",
                                   low ? range_.min : range_.max, cell.text),
                       low ? "write null where nothing was measured" : "");
      return std::nullopt;
    }
    return cell.number;
  }

  io::ObjectReader& reader_;
  std::string key_;
  std::size_t size_;
  io::NumberRange range_;
};

std::optional<std::vector<double>> read_matrix(io::ObjectReader& reader, std::string_view key, std::size_t size,
                                               io::NumberRange range) {
  const io::Node* table = reader.raw(key);
  return table == nullptr ? std::nullopt : MatrixReader(reader, key, size, range).read(*table);
}

// Positions of the named nodes in the fleet; nullopt after a report.
std::optional<std::vector<std::size_t>> read_measured_nodes(io::ObjectReader& reader, const std::vector<Node>& nodes) {
  std::vector<std::string> known;
  known.reserve(nodes.size());
  for (const Node& node : nodes) known.push_back(node.name);
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < known.size(); ++i) index[known[i]] = i;
  if (!reader.has("nodes")) reader.error_at("nodes", "missing-key", "missing key \"nodes\"");
  std::vector<std::size_t> result;
  std::set<std::size_t> taken;
  for (const std::string& pattern : reader.strings_if("nodes")) {
    for (const std::string& name : read_names(reader, "nodes", pattern)) {
      const auto found = index.find(name);
      if (found == index.end()) {
        reader.error_at("nodes", "unknown-node", fmt::format("no node is called \"{}\"", name),
                        hint_among(name, known, "a name"));
        return std::nullopt;
      }
      if (!taken.insert(found->second).second) {
        reader.error_at("nodes", "duplicate-node", fmt::format("\"{}\" is listed twice", name));
        return std::nullopt;
      }
      result.push_back(found->second);
    }
  }
  return result;
}

}  // namespace

std::vector<LinkRule> read_link_rules(io::ObjectReader& root, const std::vector<Node>& nodes) {
  LabelValues labels;
  for (const Node& node : nodes) {
    for (const auto& [key, value] : node.labels) labels[key].insert(value);
  }
  std::vector<LinkRule> rules;
  for (io::ObjectReader& reader : root.objects_if("links")) {
    if (reader.valid()) rules.push_back(RuleReader(reader, labels).read());
  }
  return rules;
}

void read_measured_links(io::ObjectReader& root, Fleet& fleet) {
  auto reader = root.object_if("measured_links");
  if (!reader) return;
  if (fleet.nodes.size() > kMaxMeasuredNodes) {
    root.error_at("measured_links", "out-of-range",
                  fmt::format("a fleet of {} nodes cannot be measured pairwise, only one of up to {}",
                              fleet.nodes.size(), kMaxMeasuredNodes),
                  "describe the tiers with \"links\"");
    return;
  }
  const auto chosen = read_measured_nodes(*reader, fleet.nodes);
  const std::size_t size = chosen ? chosen->size() : 0;
  reader->ignore("bandwidth_gbit_s");
  reader->ignore("latency_us");
  if (!reader->has("bandwidth_gbit_s")) {
    reader->error_at("bandwidth_gbit_s", "missing-key", "missing key \"bandwidth_gbit_s\"");
  }
  reader->finish();
  if (!chosen || size == 0) return;
  const auto rates = read_matrix(*reader, "bandwidth_gbit_s", size, kBandwidthGbit);
  const auto latencies = read_matrix(*reader, "latency_us", size, kLatencyUs);
  if (!rates) return;

  std::vector<Link> measured(fleet.nodes.size() * fleet.nodes.size());
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) {
      // Training sends both ways at once, so the slower direction counts.
      const double rate = std::min((*rates)[i * size + j], (*rates)[j * size + i]);
      if (i == j || rate <= 0) continue;
      const std::size_t a = (*chosen)[i];
      const std::size_t b = (*chosen)[j];
      const Nanoseconds latency = latencies ? from_us(std::max((*latencies)[i * size + j], (*latencies)[j * size + i]))
                                            : fleet.between(a, b).latency;
      measured[a * fleet.nodes.size() + b] = {BytesPerSecond(rate * kGigabit), latency};
    }
  }
  fleet.measured = std::move(measured);
}

}  // namespace tangram::cluster
