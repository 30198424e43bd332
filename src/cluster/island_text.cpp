#include "island_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::cluster {

namespace {

struct MetricWords {
  Metric metric;
  const char* alias;
  const char* less;  ///< of the worse side: "31 % slower matrix products"
};

constexpr std::array<MetricWords, kMetricCount> kWords = {{
    {Metric::kCompute, "compute", "slower matrix products"},
    {Metric::kMemory, "memory", "less memory"},
    {Metric::kMemoryBandwidth, "memory-bandwidth", "slower memory"},
    {Metric::kInsideLink, "link", "slower links between its GPUs"},
    {Metric::kNetwork, "network", "slower network"},
}};

bool differ(double a, double b, double tolerance) {
  if (a <= 0 || b <= 0) return a != b;
  return std::abs(std::log(a) - std::log(b)) > allowed_distance(tolerance);
}

int percent_less(double worse, double better) { return static_cast<int>(std::lround(100 * (1 - worse / better))); }

std::string plural(int count, const char* noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); }

std::string nodes_text(const Fleet& fleet, const std::vector<std::size_t>& nodes) {
  const std::string& first = fleet.nodes[nodes.front()].name;
  if (nodes.size() == 1) return first;
  if (nodes.size() == 2) return first + " and " + fleet.nodes[nodes[1]].name;
  return fmt::format("{} and {} more", first, nodes.size() - 1);
}

std::string fabric(const IslandClass& c) {
  if (c.inside_member.bandwidth <= c.device.pcie.bandwidth) return "PCIe";
  if (c.device.vendor == "nvidia") return "NVLink";
  if (c.device.vendor == "amd") return "Infinity Fabric";
  return "the peer link";
}

std::vector<std::size_t> nodes_of(const Island& island) {
  std::vector<std::size_t> nodes;
  for (const IslandMember& member : island.members) {
    if (nodes.empty() || nodes.back() != member.node) nodes.push_back(member.node);
  }
  return nodes;
}

// --- level names ---

bool joined(const Island& island) { return island.members.size() > 1; }

bool held_by(const Fleet& fleet, const UnnamedLevel& unnamed, const std::string& key) {
  return std::all_of(unnamed.level.islands.begin(), unnamed.level.islands.end(), [&](const Island& island) {
    return !joined(island) || !common_label(fleet, nodes_of(island), key).empty();
  });
}

// Alike members are in one island exactly if they have the same value.
bool explained_by(const Fleet& fleet, const UnnamedLevel& unnamed, const std::string& key) {
  std::map<std::pair<std::size_t, std::string>, int> islands;
  for (const Island& island : unnamed.level.islands) {
    const std::string value = common_label(fleet, nodes_of(island), key);
    const std::size_t alike = at(unnamed.facts, island.island_class).alike;
    if (value.empty() || ++islands[{alike, value}] > 1) return false;
  }
  return true;
}

bool all_alike_together(const UnnamedLevel& unnamed) {
  for (std::size_t i = 0; i < unnamed.facts.size(); ++i) {
    if (unnamed.level.classes[i].islands.size() > 1) return false;
    if (i > 0 && unnamed.facts[i].alike == unnamed.facts[i - 1].alike) return false;
  }
  return true;
}

// --- aliases ---

using Suffix = std::string;

Suffix size_suffix(const IslandClass& c) { return fmt::format("x{}", c.gpus_per_member); }

Suffix metric_suffix(const MetricWords& words, double value, double best, double tolerance) {
  if (value <= 0 || !differ(value, best, tolerance))
    return value <= 0 && best > 0 ? fmt::format("no-{}", words.alias) : "";
  return fmt::format("{}-{}%", words.alias, percent_less(value, best));
}

/// Appends what `suffix` says to the classes of `group` if it tells any two of them apart.
template <class SuffixOf>
void tell_apart(std::vector<std::string>& aliases, const std::vector<std::size_t>& group, SuffixOf suffix) {
  std::vector<std::string> suffixes;
  suffixes.reserve(group.size());
  for (const std::size_t i : group) suffixes.push_back(suffix(i));
  if (std::all_of(suffixes.begin(), suffixes.end(), [&](const auto& s) { return s == suffixes.front(); })) return;
  for (std::size_t k = 0; k < group.size(); ++k) {
    if (!suffixes[k].empty()) aliases[group[k]] += "@" + suffixes[k];
  }
}

/// Classes that still have the same alias.
std::vector<std::vector<std::size_t>> namesakes(const std::vector<std::string>& aliases) {
  std::map<std::string, std::vector<std::size_t>> by_alias;
  for (std::size_t i = 0; i < aliases.size(); ++i) by_alias[aliases[i]].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [alias, group] : by_alias) {
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

// --- reasons ---

// What is worse in class a than in class b, in words; empty: nothing beyond the tolerance.
std::string shortcomings(const UnnamedLevel& level, std::size_t a, std::size_t b, double tolerance) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  // One name is one record: where the numbers differ all the same, somebody measured them.
  const bool same_type = level.level.classes[a].device.name == level.level.classes[b].device.name;
  for (const MetricWords& words : kWords) {
    const double mine = level.facts[a].metrics.value(words.metric);
    const double other = level.facts[b].metrics.value(words.metric);
    if (mine >= other || !differ(mine, other, tolerance)) continue;
    if (words.metric == Metric::kInsideLink && level.level.classes[a].gpus_per_member == 1) continue;
    const bool of_device = words.metric != Metric::kInsideLink && words.metric != Metric::kNetwork;
    add(fmt::format("{} % {}{}", percent_less(mine, other), words.less, same_type && of_device ? " (measured)" : ""));
  }
  if (level.facts[a].metrics.gpus < level.facts[b].metrics.gpus) {
    add(fmt::format("{} on its fast link instead of {}", plural(level.facts[a].metrics.gpus, "GPU"),
                    level.facts[b].metrics.gpus));
  }
  return text;
}

std::string apart_from(const Fleet& fleet, const UnnamedLevel& level, std::size_t mine, std::size_t other,
                       double tolerance) {
  const std::string where = nodes_text(fleet, level.facts[other].nodes);
  const std::string worse = shortcomings(level, mine, other, tolerance);
  const std::string better = shortcomings(level, other, mine, tolerance);
  if (!worse.empty() && !better.empty()) return fmt::format("apart from {}: {}; there {}", where, worse, better);
  if (!worse.empty()) return fmt::format("apart from {}: {}", where, worse);
  if (!better.empty()) return fmt::format("apart from {}: {} there", where, better);
  const Link& link = level.level.link(static_cast<int>(mine), static_cast<int>(other));
  return fmt::format("apart from {}: {} between", where, bits_per_second(link.bandwidth));
}

// The same for all islands of a class: other classes of the same GPU type, the first few of them.
std::string apart_from_namesakes(const Fleet& fleet, const UnnamedLevel& level, std::size_t mine, double tolerance) {
  constexpr int kShown = 3;
  std::string text;
  int apart = 0;
  for (std::size_t other = 0; other < level.facts.size(); ++other) {
    if (other == mine || level.level.classes[other].device.name != level.level.classes[mine].device.name) continue;
    if (++apart <= kShown) text += "; " + apart_from(fleet, level, mine, other, tolerance);
  }
  if (apart > kShown) text += fmt::format("; and from {} of this GPU type", plural(apart - kShown, "more class"));
  return text;
}

std::string together(const IslandClass& c, const Island& island, double tolerance) {
  const int members = c.members_per_island;
  const auto nodes = static_cast<int>(nodes_of(island).size());
  std::string who = c.device.name + ", " + plural(c.gpus_per_member, "GPU");
  if (c.gpus_per_member > 1) who += " on " + fabric(c);
  const bool whole_nodes = nodes == members;
  if (members == 1) return who;
  const std::string count =
      whole_nodes ? plural(nodes, "node") : fmt::format("{} in {}", plural(members, "group"), plural(nodes, "node"));
  return fmt::format("{} alike within {:.3g} %: {}{}; joined by {}", count, 100 * tolerance, who,
                     whole_nodes ? "" : " each", bits_per_second(c.between_members.bandwidth));
}

}  // namespace

std::string bits_per_second(BytesPerSecond bandwidth) {
  const double gbit = bandwidth.value() * 8 / 1e9;
  if (gbit >= 1 || gbit <= 0) return fmt::format("{:.4g} Gbit/s", gbit);
  return fmt::format("{:.4g} Mbit/s", gbit * 1000);
}

std::vector<std::string> keys_of_rules_and_labels(const Fleet& fleet) {
  std::vector<std::string> keys;
  for (const LinkRule& rule : fleet.rules) {
    if (std::find(keys.begin(), keys.end(), rule.key) == keys.end()) keys.push_back(rule.key);
  }
  std::set<std::string> others;
  for (const Node& node : fleet.nodes) {
    for (const auto& [key, value] : node.labels) others.insert(key);
  }
  for (const std::string& key : keys) others.erase(key);
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

std::string common_label(const Fleet& fleet, const std::vector<std::size_t>& nodes, const std::string& key) {
  std::string value;
  for (const std::size_t i : nodes) {
    const auto found = fleet.nodes[i].labels.find(key);
    if (found == fleet.nodes[i].labels.end()) return {};
    if (i != nodes.front() && found->second != value) return {};
    value = found->second;
  }
  return value;
}

std::string level_name(const Fleet& fleet, const UnnamedLevel& unnamed) {
  const std::vector<Island>& islands = unnamed.level.islands;
  if (std::none_of(islands.begin(), islands.end(), joined)) return "node";
  const auto on_one_host = [](const Island& island) { return nodes_of(island).size() == 1; };
  if (std::all_of(islands.begin(), islands.end(), on_one_host)) return "host";
  if (all_alike_together(unnamed)) return "fleet";
  const std::vector<std::string> keys = keys_of_rules_and_labels(fleet);
  for (const std::string& key : keys) {
    if (explained_by(fleet, unnamed, key)) return key;
  }
  for (const std::string& key : keys) {
    if (held_by(fleet, unnamed, key)) return key;
  }
  return bits_per_second(BytesPerSecond(unnamed.level.threshold));
}

std::vector<std::string> class_aliases(const Fleet& fleet, const UnnamedLevel& unnamed, double tolerance) {
  const std::vector<IslandClass>& classes = unnamed.level.classes;
  std::vector<std::string> aliases;
  aliases.reserve(classes.size());
  for (const IslandClass& c : classes) aliases.push_back(c.device.name);

  for (const auto& group : namesakes(aliases)) {
    tell_apart(aliases, group, [&](std::size_t i) { return size_suffix(classes[i]); });
  }
  for (const MetricWords& words : kWords) {
    for (const auto& group : namesakes(aliases)) {
      double best = 0;
      for (const std::size_t i : group) best = std::max(best, unnamed.facts[i].metrics.value(words.metric));
      tell_apart(aliases, group, [&](std::size_t i) {
        return metric_suffix(words, unnamed.facts[i].metrics.value(words.metric), best, tolerance);
      });
    }
  }
  for (const std::string& key : keys_of_rules_and_labels(fleet)) {
    for (const auto& group : namesakes(aliases)) {
      tell_apart(aliases, group, [&](std::size_t i) {
        const std::string value = common_label(fleet, unnamed.facts[i].nodes, key);
        return value.empty() ? "" : fmt::format("{}={}", key, value);
      });
    }
  }
  for (const auto& group : namesakes(aliases)) {
    tell_apart(aliases, group, [&](std::size_t i) {
      return unnamed.facts[i].nodes.size() == 1 ? fleet.nodes[unnamed.facts[i].nodes.front()].name : std::string();
    });
  }
  for (const auto& group : namesakes(aliases)) {
    tell_apart(aliases, group, [&](std::size_t i) { return fmt::format("of-{}", classes[i].members_per_island); });
  }
  for (const auto& group : namesakes(aliases)) {
    for (std::size_t k = 1; k < group.size(); ++k) aliases[group[k]] += fmt::format("#{}", k + 1);
  }
  return aliases;
}

std::vector<std::string> island_reasons(const Fleet& fleet, const UnnamedLevel& named, double tolerance) {
  std::vector<std::string> reasons(named.level.islands.size());
  for (const IslandClass& c : named.level.classes) {
    std::string apart = apart_from_namesakes(fleet, named, static_cast<std::size_t>(c.id), tolerance);
    if (c.islands.size() > 1) {
      apart += fmt::format("; {} to {} like it", bits_per_second(c.between_islands.bandwidth),
                           plural(static_cast<int>(c.islands.size()) - 1, "island"));
    }
    for (const int id : c.islands) {
      at(reasons, id) = together(c, at(named.level.islands, id), tolerance) + apart;
    }
  }
  return reasons;
}

}  // namespace tangram::cluster
