#include "tangram/cluster/edits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "edit_text.hpp"
#include "fleet_names.hpp"

namespace tangram::cluster {

namespace {

constexpr std::int64_t kMostAdded = 10'000;  // nodes at once

Expected<void> done() { return {}; }

std::vector<std::string> sorted(const std::set<std::string>& names) { return {names.begin(), names.end()}; }

std::vector<std::string> types_of(const Fleet& fleet) {
  std::set<std::string> names;
  for (const Node& node : fleet.nodes) {
    for (const DeviceGroup& group : node.groups) names.insert(group.device.name);
  }
  return sorted(names);
}

std::vector<std::string> label_keys(const Fleet& fleet) {
  std::set<std::string> keys;
  for (const Node& node : fleet.nodes) {
    for (const auto& [key, value] : node.labels) keys.insert(key);
  }
  return sorted(keys);
}

std::vector<std::string> label_values(const Fleet& fleet, std::string_view key) {
  std::set<std::string> values;
  for (const Node& node : fleet.nodes) {
    for (const auto& [name, value] : node.labels) {
      if (name == key) values.insert(value);
    }
  }
  return sorted(values);
}

std::vector<std::string> node_names(const Fleet& fleet) {
  std::vector<std::string> names;
  names.reserve(fleet.nodes.size());
  for (const Node& node : fleet.nodes) names.push_back(node.name);
  return names;
}

bool starts_alike(std::string_view whole, std::string_view beginning) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return whole.size() >= beginning.size() && std::equal(beginning.begin(), beginning.end(), whole.begin(),
                                                        [&](char a, char b) { return lower(a) == lower(b); });
}

/// The name that a word is, or the only one it begins.
Expected<std::string> type_called(const EditText& text, const Word& word, const std::vector<std::string>& names) {
  std::vector<std::string> meant;
  for (const std::string& name : names) {
    if (name == word.text) return name;
    if (starts_alike(name, word.text)) meant.push_back(name);
  }
  if (meant.size() == 1) return meant.front();
  if (meant.empty()) return text.unknown(word, "GPU type", names);
  return text.error(word, fmt::format("\"{}\" may be several GPU types", word.text),
                    fmt::format("{}", fmt::join(meant, ", ")));
}

using NodeTest = std::function<bool(const Node&)>;

Expected<NodeTest> labelled(const EditText& text, const Word& key, const Word& value, const Fleet& fleet) {
  const auto keys = label_keys(fleet);
  if (std::ranges::find(keys, key.text) == keys.end()) return text.unknown(key, "label", keys);
  const auto values = label_values(fleet, key.text);
  if (std::ranges::find(values, value.text) == values.end()) {
    return text.unknown(value, fmt::format("{}", key.text), values);
  }
  return NodeTest([name = std::string(key.text), wanted = std::string(value.text)](const Node& node) {
    const auto found = node.labels.find(name);
    return found != node.labels.end() && found->second == wanted;
  });
}

Expected<NodeTest> named(const EditText& text, const Word& word, const Fleet& fleet) {
  const auto names = expand_names(word.text);
  if (!names) return text.error(word, names.error());
  const auto known = node_names(fleet);
  for (const std::string& name : *names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    if (names->size() > 1) return text.error(word, fmt::format("there is no node \"{}\"", name));
    return text.unknown(word, "node", known);
  }
  return NodeTest([wanted = std::set<std::string>(names->begin(), names->end())](const Node& node) {
    return wanted.contains(node.name);
  });
}

/// Keeps the matrix of measured links in step with the nodes.
void keep_nodes(Fleet& fleet, const std::vector<bool>& keep) {
  std::vector<Node> nodes;
  std::vector<std::size_t> from;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    if (!keep[n]) continue;
    nodes.push_back(std::move(fleet.nodes[n]));
    from.push_back(n);
  }
  if (!fleet.measured.empty()) {
    std::vector<Link> measured;
    for (const std::size_t a : from) {
      for (const std::size_t b : from) measured.push_back(fleet.measured[a * keep.size() + b]);
    }
    fleet.measured = std::move(measured);
  }
  fleet.nodes = std::move(nodes);
}

void drop_type(Fleet& fleet, const std::string& type) {
  for (Node& node : fleet.nodes) {
    std::erase_if(node.groups, [&](const DeviceGroup& group) { return group.device.name == type; });
  }
}

Expected<void> drop(const std::string& argument, Fleet& fleet) {
  const EditText text("--drop", argument);
  const auto what = text.assignment(text.all());
  if (!what) return fail(what.error());
  std::vector<bool> keep;
  if (what->key.text == "gpu") {
    const auto type = type_called(text, what->value, types_of(fleet));
    if (!type) return fail(type.error());
    drop_type(fleet, *type);
    for (const Node& node : fleet.nodes) keep.push_back(!node.groups.empty());
  } else {
    const auto test =
        what->key.text == "node" ? named(text, what->value, fleet) : labelled(text, what->key, what->value, fleet);
    if (!test) return fail(test.error());
    for (const Node& node : fleet.nodes) keep.push_back(!(*test)(node));
  }
  if (std::ranges::find(keep, true) == keep.end()) return text.error(text.all(), "nothing is left of the fleet");
  keep_nodes(fleet, keep);
  return {};
}

/// What --add says.
struct Addition {
  Word gpu;
  Word like;  // instead of gpu
  std::int64_t nodes = 1;
  std::optional<std::int64_t> count;
  std::optional<BytesPerSecond> network;
  std::optional<Nanoseconds> latency;
  std::map<std::string, std::string> labels;
};

template <class T, class Into>
Expected<void> put(Expected<T> value, Into& into) {
  if (!value) return fail(std::move(value.error()));
  into = *value;
  return {};
}

Expected<void> read_member(const EditText& text, const Assignment& member, Addition& addition) {
  const std::string_view key = member.key.text;
  if (key == "gpu") return addition.gpu = member.value, done();
  if (key == "like") return addition.like = member.value, done();
  if (key == "nodes") return put(text.count(member.value, kMostAdded), addition.nodes);
  if (key == "count") return put(text.count(member.value, 1024), addition.count);
  if (key == "network") return put(text.rate(member.value), addition.network);
  if (key == "latency") return put(text.time(member.value), addition.latency);
  addition.labels[std::string(key)] = member.value.text;
  return {};
}

Expected<Addition> read_addition(const EditText& text) {
  const auto words = text.split(text.all(), ',');
  if (!words) return fail(words.error());
  Addition addition;
  for (const Word& word : *words) {
    const auto member = text.assignment(word);
    if (!member) return fail(member.error());
    if (auto read = read_member(text, *member, addition); !read) return fail(std::move(read.error()));
  }
  const bool type = !addition.gpu.text.empty();
  const bool node = !addition.like.text.empty();
  if (!type && !node) return text.error(text.all(), "which GPUs?", "gpu=TYPE,nodes=N or like=NODE,nodes=N");
  if (type && node) return text.error(addition.like, "gpu= and like= both say which GPUs", "leave one of them out");
  if (node && addition.count) return text.error(addition.like, "a node like another has as many GPUs");
  return addition;
}

const Node* first_with(const Fleet& fleet, const std::string& type) {
  const auto found = std::ranges::find_if(fleet.nodes, [&](const Node& node) {
    return std::ranges::any_of(node.groups, [&](const DeviceGroup& group) { return group.device.name == type; });
  });
  return found == fleet.nodes.end() ? nullptr : &*found;
}

int gpus_of(const Node& node) {
  int sum = 0;
  for (const DeviceGroup& group : node.groups) sum += group.count;
  return sum;
}

/// What a node of a new type is like where nothing is said: the first of the nodes with the most GPUs.
const Node& largest_of(const Fleet& fleet) { return *std::ranges::max_element(fleet.nodes, {}, gpus_of); }

/// What was not said, and from where it is taken; empty: all was said.
std::string assumed_of(const Addition& addition, const std::string& type, const Node& like) {
  std::vector<std::string> taken;
  if (!addition.count) taken.push_back(fmt::format("{} GPUs a node", gpus_of(like)));
  if (!addition.network) taken.push_back(fmt::format("{:g} Gbit/s", like.network.bandwidth.value() * 8 / 1e9));
  std::string text;
  if (type != addition.gpu.text) text = fmt::format("{} is taken as {}", addition.gpu.text, type);
  if (taken.empty()) return text;
  return fmt::format("{}{}{} as {} has", text.empty() ? type : text, text.empty() ? ": " : ", ",
                     fmt::join(taken, " and "), like.name);
}

/// A node of a type that the fleet has not: as a cluster file would have it.
Expected<Node> new_node(const EditText& text, const Addition& addition, const std::string& type, Fleet& fleet) {
  const Node& like = largest_of(fleet);
  if (std::string assumed = assumed_of(addition, type, like); !assumed.empty()) {
    fleet.assumed.push_back(fmt::format("--add: {}", assumed));
  }
  constexpr Nanoseconds kUsualLatency{5'000};
  const Nanoseconds latency =
      addition.latency.value_or(addition.network ? kUsualLatency : Nanoseconds(like.network.latency));
  const std::int64_t count = addition.count.value_or(gpus_of(like));
  const BytesPerSecond network = addition.network.value_or(like.network.bandwidth);
  auto read =
      read_fleet(fmt::format(R"({{"schema": "tangram.cluster/1", "name": "added", "nodes": [{{"name": "added", )"
                             R"("gpus": [{{"type": "{}", "count": {}}}], )"
                             R"("network": {{"bandwidth_gbit_s": {}, "latency_us": {}}}}}]}})",
                             type, count, network.value() * 8 / 1e9, latency.as_double() / 1e3),
                 "--add");
  if (!read) return text.error(text.all(), read.error().front().message, read.error().front().hint);
  return read->nodes.front();
}

/// A node with all that another one has.
Expected<Node> copied_node(const EditText& text, const Addition& addition, const Fleet& fleet) {
  const auto model = std::ranges::find(fleet.nodes, addition.like.text, &Node::name);
  if (model == fleet.nodes.end()) return text.unknown(addition.like, "node", node_names(fleet));
  return *model;
}

/// Of the catalogue's types whose names begin with this word and a dash ("H100"), the one that is usual in servers:
/// with the fastest fabric, the fastest and the most memory. Null where they are of several generations.
const GpuType* usual_of_family(std::string_view word) {
  const std::string beginning = std::string(word) + "-";
  const GpuType* usual = nullptr;
  for (const GpuType& type : catalogue()) {
    if (!starts_alike(type.name, beginning)) continue;
    if (usual != nullptr && usual->architecture != type.architecture) return nullptr;
    const auto worth = [](const GpuType& t) {
      return std::tuple(t.peer_link.bandwidth.value(), t.memory_bandwidth.value(), t.memory);
    };
    if (usual == nullptr || worth(*usual) < worth(type)) usual = &type;
  }
  return usual;
}

/// A type of the fleet, else of the catalogue.
Expected<std::string> type_to_add(const EditText& text, const Word& word, const Fleet& fleet) {
  std::vector<std::string> names = types_of(fleet);
  if (std::ranges::any_of(names, [&](const std::string& name) { return starts_alike(name, word.text); })) {
    return type_called(text, word, names);
  }
  for (const GpuType& known : catalogue()) {
    if (known.name == word.text) return known.name;
    names.push_back(known.name);
  }
  if (const GpuType* usual = usual_of_family(word.text)) return usual->name;
  return type_called(text, word, names);
}

/// A node with GPUs of one type, and of what it has else what the first of the fleet with that type has.
Expected<Node> node_of_type(const EditText& text, const Addition& addition, Fleet& fleet) {
  const auto type = type_to_add(text, addition.gpu, fleet);
  if (!type) return fail(type.error());
  const Node* model = first_with(fleet, *type);
  if (model == nullptr) return new_node(text, addition, *type, fleet);
  Node node = *model;
  std::erase_if(node.groups, [&](const DeviceGroup& group) { return group.device.name != *type; });
  if (addition.count) {
    DeviceGroup& group = node.groups.front();
    if (*addition.count != group.count && group.clique == group.count) group.clique = static_cast<int>(*addition.count);
    group.count = static_cast<int>(*addition.count);
    if (group.count % group.clique != 0) {
      return text.error(addition.gpu, fmt::format("GPUs of {} are joined in sets of {}", *type, group.clique),
                        "a count that they divide");
    }
  }
  return node;
}

/// "added-1" and on, whatever is there already.
std::string free_name(const Fleet& fleet, int& number) {
  const auto names = node_names(fleet);
  while (true) {
    std::string name = fmt::format("added-{}", number++);
    if (std::ranges::find(names, name) == names.end()) return name;
  }
}

void append(Fleet& fleet, Node node) {
  if (!fleet.measured.empty()) {
    const std::size_t old = fleet.nodes.size();
    std::vector<Link> measured((old + 1) * (old + 1));
    for (std::size_t a = 0; a < old; ++a) {
      for (std::size_t b = 0; b < old; ++b) measured[a * (old + 1) + b] = fleet.measured[a * old + b];
    }
    fleet.measured = std::move(measured);
  }
  fleet.nodes.push_back(std::move(node));
}

Expected<void> add(const std::string& argument, Fleet& fleet) {
  const EditText text("--add", argument);
  const auto addition = read_addition(text);
  if (!addition) return fail(addition.error());
  auto node = addition->like.text.empty() ? node_of_type(text, *addition, fleet) : copied_node(text, *addition, fleet);
  if (!node) return fail(std::move(node.error()));
  node->network.bandwidth = addition->network.value_or(node->network.bandwidth);
  node->network.latency = addition->latency.value_or(node->network.latency);
  for (const auto& [key, value] : addition->labels) node->labels[key] = value;
  int number = 1;
  for (std::int64_t i = 0; i < addition->nodes; ++i) {
    node->name = free_name(fleet, number);
    append(fleet, *node);
  }
  if (fleet.gpu_count() > kMaxGpus) {
    return text.error(text.all(), fmt::format("a fleet has at most {} GPUs", kMaxGpus));
  }
  return {};
}

/// "link(zone:a,zone:b).bandwidth=10Gbit" in pieces.
struct Setting {
  Word kind;
  Word inside;
  Word field;
  Word value;
};

Expected<Setting> read_setting(const EditText& text) {
  const auto parts = text.assignment(text.all());
  if (!parts) return fail(parts.error());
  const std::string_view target = parts->key.text;
  const std::size_t open = target.find('(');
  const std::size_t close = target.find(").");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return text.error(parts->key, "what is to be set?",
                      "link(zone:a,zone:b).bandwidth, node(NAME).network, gpu(TYPE).price");
  }
  Setting setting{{target.substr(0, open), 0},
                  {target.substr(open + 1, close - open - 1), open + 1},
                  {target.substr(close + 2), close + 2},
                  parts->value};
  if (setting.inside.text.empty()) return text.error({target.substr(open, 1), open}, "of what?");
  return setting;
}

struct Pair {
  Word key;
  Word value;
};

Expected<Pair> label_pair(const EditText& text, const Word& word) {
  const std::size_t colon = word.text.find(':');
  if (colon == std::string_view::npos) return text.error(word, "a label and its value were expected", "as in zone:a");
  return Pair{{word.text.substr(0, colon), word.at}, {word.text.substr(colon + 1), word.at + colon + 1}};
}

/// The rule that the text of a link names; its link is the slowest that there is now between such nodes.
Expected<LinkRule> read_rule(const EditText& text, const Word& inside, const Fleet& fleet) {
  const auto words = text.split(inside, ',');
  if (!words) return fail(words.error());
  LinkRule rule;
  if (words->size() == 1) {
    const auto keys = label_keys(fleet);
    if (std::ranges::find(keys, inside.text) == keys.end()) return text.unknown(inside, "label", keys);
    rule.key = inside.text;
    return rule;
  }
  if (words->size() > 2) return text.error((*words)[2], "a link has two ends");
  for (const Word& word : *words) {
    const auto pair = label_pair(text, word);
    if (!pair) return fail(pair.error());
    if (const auto test = labelled(text, pair->key, pair->value, fleet); !test) return fail(test.error());
    if (!rule.key.empty() && rule.key != pair->key.text) {
      return text.error(pair->key, "both ends of a link are values of one label", fmt::format("{}:...", rule.key));
    }
    rule.key = pair->key.text;
    (rule.a.empty() ? rule.a : rule.b) = pair->value.text;
  }
  if (rule.a == rule.b) {
    rule.same = true;
    rule.b.clear();
  }
  return rule;
}

bool joins(const LinkRule& rule, const Node& a, const Node& b) {
  const auto x = a.labels.find(rule.key);
  const auto y = b.labels.find(rule.key);
  if (x == a.labels.end() || y == b.labels.end()) return false;
  if (rule.same) return x->second == rule.a && y->second == rule.a;
  if (rule.a.empty()) return x->second != y->second;
  return (x->second == rule.a && y->second == rule.b) || (x->second == rule.b && y->second == rule.a);
}

Expected<void> change_link(const EditText& text, const Setting& setting, Link& link) {
  if (setting.field.text == "bandwidth") return put(text.rate(setting.value), link.bandwidth);
  if (setting.field.text == "latency") return put(text.time(setting.value), link.latency);
  return text.unknown(setting.field, "property of a link", std::vector<std::string>{"bandwidth", "latency"});
}

Expected<void> set_link(const EditText& text, const Setting& setting, Fleet& fleet) {
  auto rule = read_rule(text, setting.inside, fleet);
  if (!rule) return fail(std::move(rule.error()));
  const std::size_t count = fleet.nodes.size();
  bool any = false;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      if (!joins(*rule, fleet.nodes[a], fleet.nodes[b])) continue;
      if (!any) rule->link = fleet.between(a, b);
      any = true;
      if (fleet.measured.empty() || fleet.measured[a * count + b].bandwidth.value() <= 0) continue;
      Link& one = fleet.measured[a * count + b];
      if (auto changed = change_link(text, setting, one); !changed) return changed;
      fleet.measured[b * count + a] = one;
    }
  }
  if (!any) return text.error(setting.inside, "no two nodes are joined by such a link");
  if (auto changed = change_link(text, setting, rule->link); !changed) return changed;
  fleet.rules.push_back(std::move(*rule));
  return {};
}

Expected<void> change_device(const EditText& text, const Setting& setting, GpuType& device) {
  const auto share = text.share(setting.value);
  if (!share) return fail(share.error());
  if (setting.field.text == "memory") {
    device.memory = Bytes(static_cast<std::int64_t>(device.memory.as_double() * *share));
    if (device.memory <= device.reserved) return text.error(setting.value, "no memory is left");
    return {};
  }
  for (FlopsPerSecond& peak : device.peak) peak = FlopsPerSecond(peak.value() * *share);
  return {};
}

std::vector<std::string> with_network(bool network) {
  std::vector<std::string> names{"compute", "memory", "price"};
  if (network) names.insert(names.begin(), "network");
  return names;
}

Expected<void> set_nodes(const EditText& text, const Setting& setting, Fleet& fleet) {
  Expected<NodeTest> test = NodeTest();
  if (setting.inside.text.find(':') == std::string_view::npos) {
    test = named(text, setting.inside, fleet);
  } else if (const auto pair = label_pair(text, setting.inside); pair) {
    test = labelled(text, pair->key, pair->value, fleet);
  }
  if (!test) return fail(std::move(test.error()));
  const auto names = with_network(true);
  if (std::ranges::find(names, setting.field.text) == names.end()) {
    return text.unknown(setting.field, "property of a node", names);
  }
  for (Node& node : fleet.nodes) {
    if (!(*test)(node)) continue;
    Expected<void> changed;
    if (setting.field.text == "network") {
      changed = put(text.rate(setting.value), node.network.bandwidth);
    } else if (setting.field.text == "price") {
      changed = put(text.dollars(setting.value), node.price_per_hour);
    } else {
      for (DeviceGroup& group : node.groups) {
        if (changed) changed = change_device(text, setting, group.device);
      }
    }
    if (!changed) return changed;
  }
  return {};
}

Expected<void> set_type(const EditText& text, const Setting& setting, Fleet& fleet) {
  const auto type = type_called(text, setting.inside, types_of(fleet));
  if (!type) return fail(type.error());
  const auto names = with_network(false);
  if (std::ranges::find(names, setting.field.text) == names.end()) {
    return text.unknown(setting.field, "property of a GPU type", names);
  }
  for (Node& node : fleet.nodes) {
    for (DeviceGroup& group : node.groups) {
      if (group.device.name != *type) continue;
      auto changed = setting.field.text == "price" ? put(text.dollars(setting.value), group.device.price_per_hour)
                                                   : change_device(text, setting, group.device);
      if (!changed) return changed;
    }
  }
  return {};
}

Expected<void> set(const std::string& argument, Fleet& fleet) {
  const EditText text("--set", argument);
  const auto setting = read_setting(text);
  if (!setting) return fail(setting.error());
  if (setting->kind.text == "link") return set_link(text, *setting, fleet);
  if (setting->kind.text == "node") return set_nodes(text, *setting, fleet);
  if (setting->kind.text == "gpu") return set_type(text, *setting, fleet);
  return text.unknown(setting->kind, "kind of thing", std::vector<std::string>{"link", "node", "gpu"});
}

}  // namespace

Expected<Fleet> edited(Fleet fleet, const Edits& edits) {
  if (edits.empty()) return fleet;
  Diagnostics mistakes;
  const auto apply = [&](const std::vector<std::string>& arguments, auto edit) {
    for (const std::string& argument : arguments) {
      if (auto changed = edit(argument, fleet); !changed) {
        mistakes.insert(mistakes.end(), changed.error().begin(), changed.error().end());
      }
    }
  };
  apply(edits.drop, drop);
  apply(edits.add, add);
  apply(edits.set, set);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  // Read anew: sorted, checked as a whole, with a digest of its own.
  auto read = read_fleet(write_fleet(fleet), fleet.name);
  if (read) read->assumed = std::move(fleet.assumed);
  return read;
}

}  // namespace tangram::cluster
