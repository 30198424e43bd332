#include "fleet_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "fleet_devices.hpp"
#include "fleet_names.hpp"
#include "link_values.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::cluster {

namespace {

// Latency of one step over kinds of networks, when the file gives the kind alone: of the order of what nccl-tests shows
// for small messages between two nodes.
enum class NetworkKind : std::uint8_t { kInfiniBand, kRoce, kEfa, kSlingshot, kEthernet };

double usual_latency_us(NetworkKind kind) {
  switch (kind) {
    case NetworkKind::kInfiniBand: return 5;
    case NetworkKind::kRoce:
    case NetworkKind::kSlingshot: return 8;
    case NetworkKind::kEfa: return 20;
    case NetworkKind::kEthernet: return 30;
  }
  return 30;
}

Link read_network(io::ObjectReader& network) {
  Link link;
  const auto cards = static_cast<double>(network.integer_or("cards", 1, io::integer_limit("cards")));
  link.bandwidth = BytesPerSecond(cards * network.number("bandwidth_gbit_s", kBandwidthGbit) * kGigabit);
  const bool has_kind = network.has("kind");
  const auto kind = network.choice_or<NetworkKind>("kind", NetworkKind::kEthernet,
                                                   {{"infiniband", NetworkKind::kInfiniBand},
                                                    {"roce", NetworkKind::kRoce},
                                                    {"efa", NetworkKind::kEfa},
                                                    {"slingshot", NetworkKind::kSlingshot},
                                                    {"ethernet", NetworkKind::kEthernet}});
  link.latency = from_us(network.number_or("latency_us", usual_latency_us(kind), kLatencyUs));
  if (!has_kind && !network.has("latency_us")) {
    network.error_at("latency_us", "missing-key", "missing key \"latency_us\"",
                     "or give \"kind\", which has a usual latency: infiniband, roce, efa, slingshot or ethernet");
  }
  network.finish();
  return link;
}

void read_labels(io::ObjectReader& reader, std::map<std::string, std::string>& labels) {
  for (auto& [key, value] : reader.string_members("labels")) {
    if (key.empty() || value.empty()) {
      reader.error_at("labels", "out-of-range", "neither a label's key nor its value may be empty");
    } else {
      labels[key] = value;
    }
  }
}

std::vector<std::string> read_group_names(io::ObjectReader& group) {
  const std::string pattern = group.string("name");
  const bool numbered = pattern.find("{}") != std::string::npos;
  const bool counted = group.has("count");
  const auto count = static_cast<int>(group.integer_or("count", 1, io::integer_limit("hosts")));
  if (numbered && !counted) {
    group.error_at("name", "bad-pattern", "\"{}\" in a name stands for numbers up to \"count\", which is missing",
                   "add \"count\": 16");
    return {};
  }
  if (counted && !numbered) {
    group.error_at("count", "bad-pattern", fmt::format("\"count\" needs \"{{}}\" in the name \"{}\"", pattern),
                   fmt::format("write \"{}-{{}}\"", pattern.substr(0, pattern.find('['))));
    return {};
  }
  if (!numbered) return pattern.empty() ? std::vector<std::string>{} : read_names(group, "name", pattern);
  std::vector<std::string> names = number_names(pattern, count);
  if (const auto valid = expand_names(names.front()); !valid || valid->size() != 1 || valid->front() != names.front()) {
    group.error_at("name", "bad-pattern", fmt::format("\"{}\" is not a name with one \"{{}}\" for a number", pattern));
    return {};
  }
  return names;
}

Node read_prototype(io::ObjectReader& group, const GpuTable& types, std::vector<std::string>& keys) {
  Node node;
  node.groups = read_device_groups(group, types, keys);
  if (auto network = group.object_if("network")) node.network = read_network(*network);
  if (auto bus = group.object_if("host_link")) {
    node.host_link = read_link(*bus, "bandwidth_gb_s", kGigabyte);
    bus->finish();
  } else {
    node.host_link = slowest_host_bus(node.groups);
  }
  read_labels(group, node.labels);
  node.price_per_hour = Dollars(group.number_or("price_per_hour_usd", 0, kPrice));
  return node;
}

// Which nodes of a group the entries of its "overrides" mean.
class OverrideTargets {
 public:
  explicit OverrideTargets(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      index_.emplace(node.name, names_.size());
      names_.push_back(node.name);
    }
  }

  // By position; empty after a report at the entry's key.
  std::vector<std::size_t> find(io::ObjectReader& change, const io::Member& entry) {
    const auto report = [&](std::string code, std::string message, std::string hint = {}) {
      io::Node at;
      at.line = entry.line;
      at.column = entry.column;
      at.length = entry.length;
      change.error_at(at, change.pointer(), std::move(code), std::move(message), std::move(hint));
      return std::vector<std::size_t>{};
    };
    const auto names = expand_names(entry.key);
    if (!names) return report("bad-pattern", fmt::format("\"{}\" does not expand: {}", entry.key, names.error()));
    std::vector<std::size_t> result;
    for (const std::string& name : *names) {
      const auto found = index_.find(name);
      if (found == index_.end()) {
        const auto near = closest(name, names_);
        return report("unknown-node", fmt::format("no node of this group is called \"{}\"", name),
                      near ? fmt::format("did you mean \"{}\"?", *near) : "");
      }
      if (!taken_.insert(found->second).second) {
        return report("duplicate-node", fmt::format("\"{}\" is overridden twice", name));
      }
      result.push_back(found->second);
    }
    return result;
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> index_;
  std::set<std::size_t> taken_;
};

// Applies one entry of "overrides" to `node`.
void read_override(io::ObjectReader& change, const std::vector<std::string>& keys, Node& node) {
  for (auto& [type, measured] : change.object_members("measured")) {
    bool known = false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != type) continue;
      known = true;
      apply_measurements(measured, node.groups[i]);
    }
    if (!known && !keys.empty()) {
      measured.error_at("", "unknown-gpu", fmt::format("these nodes have no GPU of type \"{}\"", type),
                        fmt::format("they have \"{}\"", fmt::join(keys, "\", \"")));
    }
    if (known) measured.finish();
  }
  read_labels(change, node.labels);
  if (auto network = change.object_if("network")) node.network = read_network(*network);
  change.finish();
}

void read_overrides(io::ObjectReader& group, const std::vector<std::string>& keys, const Node& prototype,
                    std::vector<Node>& nodes) {
  auto entries = group.object_members("overrides");
  if (entries.empty() || nodes.empty()) return;
  const io::Node& object = *group.raw("overrides");
  OverrideTargets targets(nodes);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    io::ObjectReader& change = entries[i].second;
    if (!change.valid()) continue;
    Node changed = prototype;
    read_override(change, keys, changed);
    for (const std::size_t node : targets.find(change, object.members[i])) {
      changed.name = nodes[node].name;
      nodes[node] = changed;
    }
  }
}

}  // namespace

std::vector<std::string> read_names(io::ObjectReader& reader, std::string_view key, const std::string& pattern) {
  auto names = expand_names(pattern);
  if (names) return *std::move(names);
  reader.error_at(key, "bad-pattern", fmt::format("\"{}\" does not expand: {}", pattern, names.error()),
                  "a name is plain, or has ranges such as \"node-[01-16]\"");
  return {};
}

void read_node_group(io::ObjectReader& group, const GpuTable& types, std::set<std::string>& names,
                     std::vector<Node>& nodes) {
  if (!group.valid()) return;
  std::vector<std::string> keys;
  std::vector<Node> own;
  const std::vector<std::string> own_names = read_group_names(group);
  Node prototype = read_prototype(group, types, keys);
  for (const std::string& name : own_names) {
    if (!names.insert(name).second) {
      group.error_at("name", "duplicate-node", fmt::format("there is already a node called \"{}\"", name));
      break;
    }
    own.push_back(prototype);
    own.back().name = name;
  }
  read_overrides(group, keys, prototype, own);
  group.finish();
  std::move(own.begin(), own.end(), std::back_inserter(nodes));
}

}  // namespace tangram::cluster
