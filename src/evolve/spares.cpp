// Other hosts in place of those that are gone.
#include <algorithm>
#include <map>
#include <set>

#include "fleet_gpus.hpp"
#include "tangram/evolve/refit.hpp"

namespace tangram::evolve {

namespace {

/// The GPU types a plan expects on each of its hosts.
std::map<std::string, std::map<int, std::string>> types_by_host(const plan::LaunchPlan& plan) {
  std::map<std::string, std::map<int, std::string>> types;
  for (const plan::Rank& rank : plan.ranks) types[rank.host][rank.gpu] = plan.island(rank.island).device.name;
  return types;
}

bool can_replace(const cluster::Fleet& fleet, const FleetGpus& gpus, const cluster::Node& node,
                 const std::map<int, std::string>& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    const auto where = gpus.find({node.name, entry.first});
    return where && fleet.nodes[where->node].groups[where->group].device.name == entry.second;
  });
}

}  // namespace

std::optional<plan::LaunchPlan> with_spares(const plan::LaunchPlan& old, const std::vector<Gpu>& gone,
                                            const cluster::Fleet& fleet) {
  const FleetGpus gpus(fleet);
  const auto wanted = types_by_host(old);
  std::set<std::string> taken;
  for (const auto& [host, types] : wanted) taken.insert(host);
  std::map<std::string, std::string> instead;
  for (const Gpu& gpu : gone) {
    if (instead.contains(gpu.first)) continue;
    const auto spare = std::ranges::find_if(fleet.nodes, [&](const cluster::Node& node) {
      return !taken.contains(node.name) && can_replace(fleet, gpus, node, wanted.at(gpu.first));
    });
    if (spare == fleet.nodes.end()) return std::nullopt;
    taken.insert(spare->name);
    instead[gpu.first] = spare->name;
  }
  plan::LaunchPlan repaired = old;
  for (plan::Rank& rank : repaired.ranks) {
    if (const auto other = instead.find(rank.host); other != instead.end()) rank.host = other->second;
  }
  return repaired;
}

}  // namespace tangram::evolve
