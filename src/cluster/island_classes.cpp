#include "island_classes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "tangram/base/grid.hpp"

namespace tangram::cluster {

namespace {

/// Links between and inside the sets as numbers of tiers: equal numbers are links that count as the same.
struct LinkTiers {
  Grid<int> between;
  std::vector<int> inside;
};

constexpr int kNoLink = -1;

double rate_of(const std::optional<Link>& link) { return link ? message_rate(*link) : -1; }

// The fastest rate of each tier, descending: a tier starts at the first rate that is not alike to the start before.
std::vector<double> tier_starts(std::vector<double> rates, double tolerance) {
  std::sort(rates.begin(), rates.end(), std::greater<>());
  std::vector<double> starts;
  for (const double rate : rates) {
    const bool alike =
        !starts.empty() && (rate == starts.back() ||
                            (rate > 0 && std::log(starts.back()) - std::log(rate) <= allowed_distance(tolerance)));
    if (!alike) starts.push_back(rate);
  }
  return starts;
}

// Number of starts that are at least as fast.
int tier_of(double rate, const std::vector<double>& starts) {
  if (rate < 0) return kNoLink;
  return static_cast<int>(std::upper_bound(starts.begin(), starts.end(), rate, std::greater<>()) - starts.begin());
}

LinkTiers link_tiers(const Partition& partition, const IslandLinks& links, double tolerance) {
  const std::size_t count = partition.size();
  Grid<double> between(count, count);
  std::vector<double> inside(count);
  for (std::size_t i = 0; i < count; ++i) {
    inside[i] = rate_of(links.inside(i));
    for (std::size_t j = i; j < count; ++j) between(i, j) = between(j, i) = rate_of(links.between(i, j));
  }
  std::vector<double> rates(between.begin(), between.end());
  rates.insert(rates.end(), inside.begin(), inside.end());
  const std::vector<double> starts = tier_starts(std::move(rates), tolerance);
  const auto tier = [&](double rate) { return tier_of(rate, starts); };
  LinkTiers tiers{Grid<int>(count, count), std::vector<int>(count)};
  std::ranges::transform(between, tiers.between.begin(), tier);
  std::ranges::transform(inside, tiers.inside.begin(), tier);
  return tiers;
}

bool exchangeable(const Partition& partition, const LinkTiers& tiers, std::size_t a, std::size_t b) {
  if (partition[a].alike != partition[b].alike) return false;
  if (partition[a].islands.front().size() != partition[b].islands.front().size()) return false;
  if (tiers.inside[a] != tiers.inside[b]) return false;
  for (const std::size_t own : {a, b}) {
    if (tiers.between(own, own) != kNoLink && tiers.between(own, own) != tiers.between(a, b)) return false;
  }
  for (std::size_t other = 0; other < partition.size(); ++other) {
    if (other != a && other != b && tiers.between(a, other) != tiers.between(b, other)) return false;
  }
  return true;
}

double gpu_price(const Node& node, const DeviceGroup& group) {
  int gpus = 0;
  for (const DeviceGroup& other : node.groups) gpus += other.count;
  const double share = node.price_per_hour.value() / gpus;
  return share > 0 ? share : group.device.price_per_hour.value();
}

// Every group of members once: its members are equal but for their nodes.
std::vector<std::size_t> groups_in(const Partition& partition, const std::vector<std::size_t>& sets) {
  std::set<std::size_t> member_groups;
  for (const std::size_t set : sets) {
    for (const GroupMember& member : partition[set].islands.front()) member_groups.insert(member.member_group);
  }
  return {member_groups.begin(), member_groups.end()};
}

// The class's type carries the name that most nodes of its members have.
std::string common_name(const MemberGroups& member_groups, const std::vector<std::size_t>& members) {
  std::map<std::string, std::size_t> nodes;
  const auto type = [&](std::size_t i) -> const GpuType& {
    return member_groups.fleet().nodes[member_groups[i].nodes.front()].groups[member_groups[i].group].device;
  };
  for (const std::size_t i : members) nodes[type(i).name] += member_groups[i].nodes.size();
  return std::max_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

Link worst(const std::vector<Link>& links) {
  return std::accumulate(links.begin(), links.end(), links.front(),
                         [](const Link& a, const Link& b) { return slower_of(a, b); });
}

IslandClass describe_class(const MemberGroups& member_groups, const Partition& partition,
                           const std::vector<std::size_t>& sets, const IslandLinks& links) {
  const std::vector<std::size_t> members = groups_in(partition, sets);
  IslandClass result;
  result.gpus_per_member = member_groups[members.front()].gpus();
  result.members_per_island = static_cast<int>(partition[sets.front()].islands.front().size());

  std::vector<Link> cards;
  bool first = true;
  for (const std::size_t i : members) {
    const Node& node = member_groups.fleet().nodes[member_groups[i].nodes.front()];
    const DeviceGroup& group = node.groups[member_groups[i].group];
    result.device = first ? group.device : slower_of(result.device, group.device);
    result.inside_member = first ? group.link : slower_of(result.inside_member, group.link);
    result.price_per_gpu_hour = std::max(result.price_per_gpu_hour, Dollars(gpu_price(node, group)));
    cards.push_back({BytesPerSecond(member_groups[i].metrics.value(Metric::kNetwork)), node.network.latency});
    first = false;
  }
  result.device.name = common_name(member_groups, members);

  std::vector<Link> inside;
  std::vector<Link> between;
  for (const std::size_t a : sets) {
    if (const auto link = links.inside(a)) inside.push_back(*link);
    for (const std::size_t b : sets) {
      if (const auto link = links.between(a, b)) between.push_back(*link);
    }
  }
  // A link that no two members have is never used; the nearest that exists stands in for it.
  const std::vector<Link>& known = !inside.empty() ? inside : !between.empty() ? between : cards;
  result.between_members = worst(known);
  result.between_islands = worst(between.empty() ? known : between);
  return result;
}

std::vector<IslandMember> members_of(const MemberGroups& member_groups, const std::vector<GroupMember>& island) {
  std::vector<IslandMember> members;
  members.reserve(island.size());
  for (const GroupMember& member : island) members.push_back(member_groups.island_member(member));
  std::sort(members.begin(), members.end(), [](const IslandMember& a, const IslandMember& b) {
    return std::tie(a.node, a.first_gpu) < std::tie(b.node, b.first_gpu);
  });
  return members;
}

std::vector<std::vector<IslandMember>> islands_of(const MemberGroups& member_groups, const Partition& partition,
                                                  const std::vector<std::size_t>& sets) {
  std::vector<std::vector<IslandMember>> islands;
  for (const std::size_t set : sets) {
    for (const auto& island : partition[set].islands) islands.push_back(members_of(member_groups, island));
  }
  std::sort(islands.begin(), islands.end(), [](const auto& a, const auto& b) {
    return std::tie(a.front().node, a.front().first_gpu) < std::tie(b.front().node, b.front().first_gpu);
  });
  return islands;
}

ClassFacts facts_of(const MemberGroups& member_groups, const Partition& partition,
                    const std::vector<std::size_t>& sets) {
  ClassFacts facts;
  const std::vector<std::size_t> members = groups_in(partition, sets);
  facts.alike = partition[sets.front()].alike;
  facts.metrics = member_groups[members.front()].metrics;
  for (const std::size_t i : members) facts.metrics = slower_of(facts.metrics, member_groups[i].metrics);
  std::set<std::size_t> nodes;
  for (const std::size_t set : sets) {
    for (const auto& island : partition[set].islands) {
      for (const GroupMember& member : island) nodes.insert(member.node);
    }
  }
  facts.nodes.assign(nodes.begin(), nodes.end());
  return facts;
}

/// Fastest GPUs first, larger islands first, then by the first node.
void sort_classes(const MemberGroups& member_groups, const Partition& partition,
                  std::vector<std::vector<std::size_t>>& classes) {
  const auto key = [&](const std::vector<std::size_t>& sets) {
    const IslandMember first = islands_of(member_groups, partition, sets).front().front();
    const EqualIslands& set = partition[sets.front()];
    return std::make_tuple(set.alike, -static_cast<std::ptrdiff_t>(set.islands.front().size()), first.node,
                           first.first_gpu);
  };
  std::vector<std::pair<decltype(key(classes.front())), std::vector<std::size_t>>> keyed;
  keyed.reserve(classes.size());
  for (auto& sets : classes) keyed.emplace_back(key(sets), sets);
  std::sort(keyed.begin(), keyed.end());
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = std::move(keyed[i].second);
}

std::vector<Link> class_links(const IslandLinks& links, const std::vector<std::vector<std::size_t>>& classes,
                              const std::vector<IslandClass>& described) {
  std::vector<Link> result;
  for (std::size_t a = 0; a < classes.size(); ++a) {
    for (std::size_t b = 0; b < classes.size(); ++b) {
      if (a == b) {
        result.push_back(slower_of(described[a].between_members, described[a].between_islands));
        continue;
      }
      std::vector<Link> between;
      for (const std::size_t i : classes[a]) {
        for (const std::size_t j : classes[b]) between.push_back(*links.between(i, j));
      }
      result.push_back(worst(between));
    }
  }
  return result;
}

}  // namespace

std::vector<std::vector<std::size_t>> interchangeable_sets(const Partition& partition, const IslandLinks& links,
                                                           double tolerance) {
  const LinkTiers tiers = link_tiers(partition, links, tolerance);
  std::vector<std::vector<std::size_t>> classes;
  for (std::size_t set = 0; set < partition.size(); ++set) {
    // Exchangeability is transitive, so that one representative speaks for its class.
    const auto found = std::find_if(classes.begin(), classes.end(), [&](const std::vector<std::size_t>& sets) {
      return exchangeable(partition, tiers, sets.front(), set);
    });
    if (found != classes.end()) {
      found->push_back(set);
    } else {
      classes.push_back({set});
    }
  }
  return classes;
}

UnnamedLevel build_level(const MemberGroups& member_groups, const Partition& partition, double tolerance) {
  const IslandLinks links(member_groups, partition);
  std::vector<std::vector<std::size_t>> classes = interchangeable_sets(partition, links, tolerance);
  sort_classes(member_groups, partition, classes);

  UnnamedLevel result;
  result.level.classes.reserve(classes.size());
  result.facts.reserve(classes.size());
  for (const std::vector<std::size_t>& sets : classes) {
    IslandClass island_class = describe_class(member_groups, partition, sets, links);
    island_class.id = static_cast<int>(result.level.classes.size());
    for (auto& members : islands_of(member_groups, partition, sets)) {
      const int id = static_cast<int>(result.level.islands.size());
      result.level.islands.push_back({id, island_class.id, std::move(members), {}});
      island_class.islands.push_back(id);
    }
    if (island_class.members_per_island > 1) {
      double& threshold = result.level.threshold;
      const double slowest = island_class.between_members.bandwidth.value();
      threshold = threshold > 0 ? std::min(threshold, slowest) : slowest;
    }
    result.level.classes.push_back(std::move(island_class));
    result.facts.push_back(facts_of(member_groups, partition, sets));
  }
  result.level.links = class_links(links, classes, result.level.classes);
  return result;
}

}  // namespace tangram::cluster
