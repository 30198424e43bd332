#include "member_groups.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tangram::cluster {

namespace {

constexpr double kMessageBytes = 32.0 * 1024 * 1024;

std::set<std::string> keys_of(const std::vector<LinkRule>& rules) {
  std::set<std::string> keys;
  for (const LinkRule& rule : rules) keys.insert(rule.key);
  return keys;
}

// Labels that a link rule looks at; the others do not tell nodes apart.
std::string link_labels(const Node& node, const std::set<std::string>& keys) {
  std::string text;
  for (const auto& [key, value] : node.labels) {
    if (keys.count(key) == 0) continue;
    for (const std::string* part : {&key, &value}) text.append(*part).push_back('\0');
  }
  return text;
}

bool interchangeable(const Node& a, const Node& b) {
  return a.groups == b.groups && a.host_link == b.host_link && a.network == b.network &&
         a.price_per_hour == b.price_per_hour;
}

std::vector<std::vector<std::size_t>> kinds_of(const Fleet& fleet) {
  std::vector<std::vector<std::size_t>> kinds;
  const std::set<std::string> keys = keys_of(fleet.rules);
  std::map<std::string, std::vector<std::size_t>> kinds_by_labels;
  for (std::size_t node = 0; node < fleet.nodes.size(); ++node) {
    // A measured matrix may tell any two nodes apart.
    if (!fleet.measured.empty()) {
      kinds.push_back({node});
      continue;
    }
    std::vector<std::size_t>& candidates = kinds_by_labels[link_labels(fleet.nodes[node], keys)];
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t kind) {
      return interchangeable(fleet.nodes[kinds[kind].front()], fleet.nodes[node]);
    });
    if (found != candidates.end()) {
      kinds[*found].push_back(node);
    } else {
      candidates.push_back(kinds.size());
      kinds.push_back({node});
    }
  }
  return kinds;
}

Link between_kinds(const Fleet& fleet, const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  const std::size_t node = a.front();
  const std::size_t other = &a == &b ? a.back() : b.front();
  if (node == other) return {};
  return slower_of(fleet.between(node, other), fleet.between(other, node));
}

double share_of_node(const Node& node, int gpus) {
  int all = 0;
  for (const DeviceGroup& group : node.groups) all += group.count;
  return static_cast<double>(gpus) / all;
}

}  // namespace

double message_rate(const Link& link) {
  if (link.bandwidth.value() <= 0) return 0;
  return kMessageBytes / (kMessageBytes / link.bandwidth.value() + to_seconds(link.latency));
}

MemberGroups::MemberGroups(const Fleet& fleet, double tolerance) : fleet_(&fleet), kinds_(kinds_of(fleet)) {
  between_kinds_.resize(kinds_.size() * kinds_.size());
  for (std::size_t a = 0; a < kinds_.size(); ++a) {
    for (std::size_t b = a; b < kinds_.size(); ++b) {
      const Link link = between_kinds(fleet, kinds_[a], kinds_[b]);
      between_kinds_[a * kinds_.size() + b] = between_kinds_[b * kinds_.size() + a] = link;
    }
  }
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const Node& node = fleet.nodes[kinds_[kind].front()];
    for (std::size_t group = 0; group < node.groups.size(); ++group) {
      const DeviceGroup& devices = node.groups[group];
      for (int clique = 0; clique < devices.count / devices.clique; ++clique) {
        groups_.push_back(
            {kind, group, clique, 0, metrics_of(node, devices), kinds_[kind], share_of_node(node, devices.clique)});
      }
    }
  }
  find_alike(tolerance);
  split_uneven_kinds();
}

void MemberGroups::find_alike(double tolerance) {
  std::vector<MemberMetrics> metrics;
  metrics.reserve(groups_.size());
  for (const MemberGroup& member_group : groups_) metrics.push_back(member_group.metrics);
  const std::vector<std::size_t> alike = alike_clusters(metrics, tolerance);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].alike = alike[i];
    alike_count_ = std::max(alike_count_, alike[i] + 1);
  }
}

// Alike groups of one kind are treated as rows with one link between them, although a pair of their members
// may be on one host or on two. That is exact where the host bus joins them before any network does, and safe where it
// is the slowest of their links. In between, each node stands for itself.
void MemberGroups::split_uneven_kinds() {
  std::vector<MemberGroup> result;
  for (const MemberGroup& member_group : groups_) {
    if (member_group.nodes.size() == 1 || uniform(member_group)) {
      result.push_back(member_group);
      continue;
    }
    for (const std::size_t node : member_group.nodes) {
      result.push_back(member_group);
      result.back().nodes.assign(1, node);
    }
  }
  groups_ = std::move(result);
}

bool MemberGroups::uniform(const MemberGroup& member_group) const {
  const double network = message_rate(across(member_group, member_group));
  bool has_twin = false;
  double host = 0;
  double others = 0;
  for (const MemberGroup& other : groups_) {
    if (&other == &member_group || other.alike != member_group.alike) continue;
    if (other.kind == member_group.kind) {
      has_twin = true;
      host = message_rate(on_host(member_group, other));
    } else {
      others = std::max(others, message_rate(across(member_group, other)));
    }
  }
  return !has_twin || host <= network || host > others;
}

Link MemberGroups::on_host(const MemberGroup& a, const MemberGroup& b) const {
  Link link = fleet_->nodes[a.nodes.front()].host_link;
  link.bandwidth = link.bandwidth * std::min(a.gpus(), b.gpus());
  return link;
}

// A rule or a measurement limits the node, and a member gets its share of that; what the cards limit, each end gets its
// own share of.
Link MemberGroups::across(const MemberGroup& a, const MemberGroup& b) const {
  const Node& node_a = fleet_->nodes[a.nodes.front()];
  const Node& node_b = fleet_->nodes[b.nodes.front()];
  Link link = between_kinds_[a.kind * kinds_.size() + b.kind];
  if (link.bandwidth == std::min(node_a.network.bandwidth, node_b.network.bandwidth)) {
    link.bandwidth = std::min(node_a.network.bandwidth * a.share, node_b.network.bandwidth * b.share);
  } else {
    link.bandwidth = link.bandwidth * std::min(a.share, b.share);
  }
  return link;
}

IslandMember MemberGroups::island_member(const GroupMember& member) const {
  const MemberGroup& member_group = groups_[member.member_group];
  const Node& node = fleet_->nodes[member.node];
  int first = member_group.clique * member_group.gpus();
  for (std::size_t group = 0; group < member_group.group; ++group) first += node.groups[group].count;
  return {member.node, member_group.group, first, member_group.gpus()};
}

}  // namespace tangram::cluster
