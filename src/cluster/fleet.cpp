#include "tangram/cluster/fleet.hpp"

#include <algorithm>

#include "tangram/base/assert.hpp"
#include "tangram/cluster/slowest.hpp"

namespace tangram::cluster {

namespace {

bool applies(const LinkRule& rule, const Node& a, const Node& b) {
  const auto x = a.labels.find(rule.key);
  const auto y = b.labels.find(rule.key);
  if (x == a.labels.end() || y == b.labels.end()) return false;
  if (rule.same) return x->second == y->second && (rule.a.empty() || x->second == rule.a);
  if (rule.a.empty()) return x->second != y->second;
  return (x->second == rule.a && y->second == rule.b) || (x->second == rule.b && y->second == rule.a);
}

}  // namespace

int Fleet::gpu_count() const {
  int count = 0;
  for (const Node& node : nodes) {
    for (const DeviceGroup& group : node.groups) count += group.count;
  }
  return count;
}

Link Fleet::between(std::size_t a, std::size_t b) const {
  TANGRAM_ASSERT(a != b && a < nodes.size() && b < nodes.size());
  if (!measured.empty()) {
    const Link& link = measured[a * nodes.size() + b];
    if (link.bandwidth.value() > 0) return link;
  }
  const Link cards = slower_of(nodes[a].network, nodes[b].network);
  const auto rule =
      std::find_if(rules.rbegin(), rules.rend(), [&](const LinkRule& r) { return applies(r, nodes[a], nodes[b]); });
  return rule == rules.rend() ? cards : slower_of(cards, rule->link);
}

}  // namespace tangram::cluster
