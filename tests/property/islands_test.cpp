// find_islands against its definition, pair by pair, on small random fleets: complete-linkage islands, maximal at every
// level, nested levels, interchangeable classes, and no influence of the nodes' order.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "support/property.hpp"
#include "support/topology.hpp"
#include "tangram/cluster/islands.hpp"

using namespace tangram;
using namespace tangram::cluster;
using tangram::testing::gpu_type;
using tangram::testing::holds;

namespace {

// At full size from the first case on: a small size would mean few nodes with the first of everything.
int pick(int count) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, count)); }

template <class T>
T one_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(pick(static_cast<int>(values.size())))];
}

Link link_of(double gbps) { return {BytesPerSecond(gbps * 1e9), Nanoseconds(2000)}; }

DeviceGroup random_group(const std::string& type, bool pairs) {
  DeviceGroup group;
  group.device = gpu_type(type);
  group.device.compute.gemm_efficiency *= one_of<double>({1, 1, 1, 0.95, 0.9, 0.86, 0.8, 0.5});
  group.device.memory_bandwidth = group.device.memory_bandwidth * one_of<double>({1, 1, 1, 0.92, 0.85});
  group.count = one_of<int>({2, 4});
  group.clique = pairs ? 2 : group.count;
  group.link = group.device.pcie;
  return group;
}

std::map<std::string, std::string> random_labels() {
  return {{"rack", one_of<std::string>({"r1", "r2", "r3"})}, {"zone", one_of<std::string>({"z1", "z2"})}};
}

Node random_node(bool one_member) {
  Node node;
  node.groups.push_back(random_group(one_of<std::string>({"A100-80", "V100-32"}), !one_member && pick(2) == 0));
  if (!one_member && pick(4) == 0) node.groups.push_back(random_group("V100-32", pick(2) == 0));
  node.host_link = link_of(one_of<double>({32, 32, 4, 1}));
  node.network = link_of(one_of<double>({12.5, 12.5, 11.8, 25}));
  node.labels = random_labels();
  return node;
}

Fleet random_fleet(bool one_member) {
  Fleet fleet;
  const int nodes = 1 + pick(8);
  const bool one_type = pick(2) == 0;
  for (int i = 0; i < nodes; ++i) {
    // Copies make interchangeable nodes and alike ones in different places common.
    const int copied = i == 0 ? 0 : one_type ? 1 + pick(2) : pick(4);
    Node node = copied > 0 && copied < 3 ? fleet.nodes.back() : random_node(one_member);
    if (copied == 2) node.labels = random_labels();
    node.name = "n" + std::to_string(i);
    fleet.nodes.push_back(node);
  }
  // The zone's rule comes last and so wins: the links form a hierarchy.
  if (pick(2) == 0) fleet.rules.push_back({"rack", false, "", "", link_of(one_of<double>({3, 11.5}))});
  if (pick(2) == 0) fleet.rules.push_back({"zone", false, "", "", link_of(1)});
  return fleet;
}

/// Links that form no hierarchy: slow racks inside a faster fleet, or any measured matrix.
void make_unruly(Fleet& fleet) {
  if (pick(2) == 0) {
    if (pick(2) == 0) fleet.rules.clear();
    const std::string rack = one_of<std::string>({"", "r1"});
    fleet.rules.push_back({"rack", true, rack, rack, link_of(2)});
    return;
  }
  const std::size_t count = fleet.nodes.size();
  fleet.measured.assign(count * count, Link{});
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      fleet.measured[a * count + b] = link_of(one_of<double>({1, 3, 3.2, 6, 12}));
      fleet.measured[b * count + a] = fleet.measured[a * count + b];
    }
  }
}

// --- the definition, pair by pair ---

const DeviceGroup& group_of(const Fleet& fleet, const IslandMember& m) { return fleet.nodes[m.node].groups[m.group]; }

double share(const Fleet& fleet, const IslandMember& m) {
  int gpus = 0;
  for (const DeviceGroup& group : fleet.nodes[m.node].groups) gpus += group.count;
  return static_cast<double>(m.count) / gpus;
}

bool within(double a, double b, double tolerance) { return std::min(a, b) >= std::max(a, b) * (1 - tolerance - 1e-8); }

bool alike(const Fleet& fleet, const IslandMember& a, const IslandMember& b, double tolerance) {
  const DeviceGroup& x = group_of(fleet, a);
  const DeviceGroup& y = group_of(fleet, b);
  const auto flops = [](const DeviceGroup& g) {
    return g.device.peak_of(DType::kFp16).value() * g.device.compute.gemm_efficiency;
  };
  return a.count == b.count && x.device.peak_of(DType::kBf16).value() == y.device.peak_of(DType::kBf16).value() &&
         within(flops(x), flops(y), tolerance) &&
         within(x.link.bandwidth.value(), y.link.bandwidth.value(), tolerance) &&
         within(x.device.usable().as_double(), y.device.usable().as_double(), tolerance) &&
         within(x.device.memory_bandwidth.value(), y.device.memory_bandwidth.value(), tolerance) &&
         within(fleet.nodes[a.node].network.bandwidth.value() * share(fleet, a),
                fleet.nodes[b.node].network.bandwidth.value() * share(fleet, b), tolerance);
}

// GB/s between two members. Latency is the same on all links but the buses', where it is zero in both places.
double link_rate(const Fleet& fleet, const IslandMember& a, const IslandMember& b) {
  const Node& x = fleet.nodes[a.node];
  const Node& y = fleet.nodes[b.node];
  if (a.node == b.node) return x.host_link.bandwidth.value() / 1e9 * std::min(a.count, b.count);
  const double node_link = fleet.between(a.node, b.node).bandwidth.value() / 1e9;
  const double cards_x = x.network.bandwidth.value() / 1e9;
  const double cards_y = y.network.bandwidth.value() / 1e9;
  const double share_x = share(fleet, a);
  const double share_y = share(fleet, b);
  if (node_link == std::min(cards_x, cards_y)) return std::min(cards_x * share_x, cards_y * share_y);
  return node_link * std::min(share_x, share_y);
}

constexpr double kNone = 1e300;

double slowest_between(const Fleet& fleet, const Island& a, const Island& b) {
  double slowest = kNone;
  for (const IslandMember& x : a.members) {
    for (const IslandMember& y : b.members) {
      if (!(x == y)) slowest = std::min(slowest, link_rate(fleet, x, y));
    }
  }
  return slowest;
}

double slowest_inside(const Fleet& fleet, const Island& island) { return slowest_between(fleet, island, island); }

bool all_alike(const Fleet& fleet, const Island& a, const Island& b, double tolerance) {
  for (const IslandMember& x : a.members) {
    for (const IslandMember& y : b.members) {
      if (!alike(fleet, x, y, tolerance)) return false;
    }
  }
  return true;
}

bool contains(const Island& island, const IslandMember& member) {
  return std::find(island.members.begin(), island.members.end(), member) != island.members.end();
}

// --- checks ---

void check_partition(const Fleet& fleet, const IslandLevel& level) {
  std::multiset<std::pair<std::size_t, int>> seen;
  for (const Island& island : level.islands) {
    for (const IslandMember& m : island.members) {
      int first = 0;
      for (std::size_t g = 0; g < m.group; ++g) first += fleet.nodes[m.node].groups[g].count;
      RC_ASSERT(m.count == group_of(fleet, m).clique);
      RC_ASSERT((m.first_gpu - first) % m.count == 0);
      for (int gpu = 0; gpu < m.count; ++gpu) seen.emplace(m.node, m.first_gpu + gpu);
    }
  }
  RC_ASSERT(static_cast<int>(seen.size()) == fleet.gpu_count());
  RC_ASSERT(std::set(seen.begin(), seen.end()).size() == seen.size());
}

// The networks join everything, so that the coarsest islands are the clusters of alike members.
void check_alikeness(const Fleet& fleet, const IslandHierarchy& hierarchy) {
  const IslandLevel& coarsest = hierarchy.levels.back();
  for (const Island& a : coarsest.islands) {
    RC_ASSERT(all_alike(fleet, a, a, hierarchy.tolerance));
    for (const Island& b : coarsest.islands) {
      if (a.id != b.id) RC_ASSERT(!all_alike(fleet, a, b, hierarchy.tolerance));
    }
  }
}

std::size_t cluster_of(const IslandHierarchy& hierarchy, const Island& island) {
  const std::vector<Island>& clusters = hierarchy.levels.back().islands;
  const auto found = std::find_if(clusters.begin(), clusters.end(),
                                  [&](const Island& cluster) { return contains(cluster, island.members.front()); });
  return static_cast<std::size_t>(found - clusters.begin());
}

// Inside a cluster two islands never unite without a link slower than the slowest that already holds an island.
void check_maximality(const Fleet& fleet, const IslandHierarchy& hierarchy, const IslandLevel& level) {
  std::map<std::size_t, double> threshold;
  for (const Island& island : level.islands) {
    double& slowest = threshold.try_emplace(cluster_of(hierarchy, island), kNone).first->second;
    slowest = std::min(slowest, slowest_inside(fleet, island));
  }
  for (const Island& a : level.islands) {
    for (const Island& b : level.islands) {
      const std::size_t cluster = cluster_of(hierarchy, a);
      if (a.id >= b.id || cluster != cluster_of(hierarchy, b)) continue;
      const double united =
          std::min({slowest_inside(fleet, a), slowest_inside(fleet, b), slowest_between(fleet, a, b)});
      RC_ASSERT(united < threshold.at(cluster) * (1 - 1e-12));
    }
  }
}

void check_nesting(const IslandHierarchy& hierarchy) {
  for (std::size_t i = 0; i + 1 < hierarchy.levels.size(); ++i) {
    RC_ASSERT(hierarchy.levels[i].islands.size() > hierarchy.levels[i + 1].islands.size());
    for (const Island& fine : hierarchy.levels[i].islands) {
      for (const Island& coarse : hierarchy.levels[i + 1].islands) {
        if (!contains(coarse, fine.members.front())) continue;
        for (const IslandMember& member : fine.members) RC_ASSERT(contains(coarse, member));
      }
    }
  }
}

double gbps(const Link& link) { return link.bandwidth.value() / 1e9; }

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

void check_class_links(const Fleet& fleet, const IslandLevel& level) {
  for (const IslandClass& a : level.classes) {
    double inside = kNone;
    double among = kNone;
    for (const int i : a.islands) {
      const Island& x = level.islands[static_cast<std::size_t>(i)];
      RC_ASSERT(x.island_class == a.id);
      RC_ASSERT(static_cast<int>(x.members.size()) == a.members_per_island);
      inside = std::min(inside, slowest_inside(fleet, x));
      for (const int j : a.islands) {
        if (i != j) among = std::min(among, slowest_between(fleet, x, level.islands[static_cast<std::size_t>(j)]));
      }
    }
    if (inside < kNone) RC_ASSERT(near(gbps(a.between_members), inside));
    if (among < kNone) RC_ASSERT(near(gbps(a.between_islands), among));
    if (std::min(inside, among) < kNone) RC_ASSERT(near(gbps(level.link(a.id, a.id)), std::min(inside, among)));
    for (const IslandClass& b : level.classes) {
      if (a.id == b.id) continue;
      double between = kNone;
      for (const int i : a.islands) {
        for (const int j : b.islands) {
          between = std::min(between, slowest_between(fleet, level.islands[static_cast<std::size_t>(i)],
                                                      level.islands[static_cast<std::size_t>(j)]));
        }
      }
      RC_ASSERT(near(gbps(level.link(a.id, b.id)), between));
    }
  }
}

void check_devices(const Fleet& fleet, const IslandHierarchy& hierarchy, const IslandLevel& level) {
  for (const Island& island : level.islands) {
    const IslandClass& c = level.classes[static_cast<std::size_t>(island.island_class)];
    for (const IslandMember& m : island.members) {
      const GpuType& own = group_of(fleet, m).device;
      RC_ASSERT(c.device.usable() <= own.usable());
      RC_ASSERT(c.device.memory_bandwidth <= own.memory_bandwidth);
      RC_ASSERT(c.device.compute.gemm_efficiency <= own.compute.gemm_efficiency);
      RC_ASSERT(within(c.device.compute.gemm_efficiency, own.compute.gemm_efficiency, hierarchy.tolerance));
    }
  }
}

// Exchanging two islands of a class changes no link beyond the tolerance. Only stated where each node is one member:
// otherwise the class speaks of the slowest link, on one host or on two.
void check_exchange(const Fleet& fleet, const IslandHierarchy& hierarchy, const IslandLevel& level) {
  for (const Island& a : level.islands) {
    for (const Island& b : level.islands) {
      if (a.id >= b.id || a.island_class != b.island_class) continue;
      RC_ASSERT(within(slowest_inside(fleet, a), slowest_inside(fleet, b), hierarchy.tolerance + 1e-3));
      for (const Island& other : level.islands) {
        if (other.id == a.id || other.id == b.id) continue;
        RC_ASSERT(
            within(slowest_between(fleet, a, other), slowest_between(fleet, b, other), hierarchy.tolerance + 1e-3));
      }
    }
  }
}

void check_names(const IslandHierarchy& hierarchy) {
  std::set<std::string> names;
  for (const IslandLevel& level : hierarchy.levels) {
    RC_ASSERT(names.insert(level.name).second);
    std::set<std::string> aliases;
    for (const IslandClass& c : level.classes) RC_ASSERT(aliases.insert(c.alias).second);
    for (const Island& island : level.islands) RC_ASSERT(!island.reason.empty());
  }
}

double random_tolerance() { return one_of<double>({0, 0.05, 0.1, 0.2, 0.3}); }

using NodeSets = std::multiset<std::multiset<std::string>>;

NodeSets islands_by_name(const Fleet& fleet, const IslandLevel& level) {
  NodeSets sets;
  for (const Island& island : level.islands) {
    std::multiset<std::string> set;
    for (const IslandMember& m : island.members) {
      set.insert(fleet.nodes[m.node].name + ":" + std::to_string(m.group) + ":" + std::to_string(m.first_gpu));
    }
    sets.insert(set);
  }
  return sets;
}

NodeSets classes_by_name(const Fleet& fleet, const IslandLevel& level) {
  NodeSets sets;
  for (const IslandClass& c : level.classes) {
    std::multiset<std::string> set;
    for (const int id : c.islands) {
      for (const IslandMember& m : level.islands[static_cast<std::size_t>(id)].members) {
        set.insert(fleet.nodes[m.node].name + ":" + std::to_string(m.first_gpu));
      }
    }
    sets.insert(set);
  }
  return sets;
}

}  // namespace

TEST_CASE("islands are what their definition says", "[islands]") {
  holds(3000, [] {
    Fleet fleet = random_fleet(false);
    if (pick(2) == 0) make_unruly(fleet);
    const IslandHierarchy hierarchy = find_islands(fleet, random_tolerance());
    check_alikeness(fleet, hierarchy);
    check_nesting(hierarchy);
    check_names(hierarchy);
    for (const IslandLevel& level : hierarchy.levels) {
      check_partition(fleet, level);
      check_maximality(fleet, hierarchy, level);
      check_class_links(fleet, level);
      check_devices(fleet, hierarchy, level);
    }
  });
}

TEST_CASE("islands of a class are interchangeable", "[islands]") {
  holds(2000, [] {
    Fleet fleet = random_fleet(true);
    if (pick(3) == 0) make_unruly(fleet);
    const IslandHierarchy hierarchy = find_islands(fleet, random_tolerance());
    for (const IslandLevel& level : hierarchy.levels) check_exchange(fleet, hierarchy, level);
  });
}

TEST_CASE("the order of the nodes changes nothing", "[islands]") {
  holds(2000, [] {
    const Fleet fleet = random_fleet(false);
    Fleet shuffled = fleet;
    for (std::size_t i = shuffled.nodes.size(); i > 1; --i) {
      std::swap(shuffled.nodes[i - 1], shuffled.nodes[static_cast<std::size_t>(pick(static_cast<int>(i)))]);
    }
    const double tolerance = random_tolerance();
    const IslandHierarchy a = find_islands(fleet, tolerance);
    const IslandHierarchy b = find_islands(shuffled, tolerance);
    RC_ASSERT(a.levels.size() == b.levels.size());
    for (std::size_t i = 0; i < a.levels.size(); ++i) {
      RC_ASSERT(a.levels[i].name == b.levels[i].name);
      RC_ASSERT(a.levels[i].threshold == b.levels[i].threshold);
      RC_ASSERT(islands_by_name(fleet, a.levels[i]) == islands_by_name(shuffled, b.levels[i]));
      RC_ASSERT(classes_by_name(fleet, a.levels[i]) == classes_by_name(shuffled, b.levels[i]));
    }
  });
}
