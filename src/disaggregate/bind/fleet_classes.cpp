#include "fleet_classes.hpp"

#include <algorithm>
#include <map>

#include "tangram/cluster/slowest.hpp"

namespace tangram::disaggregate {

namespace {

struct Holder {
  std::size_t node = 0;
  const cluster::DeviceGroup* group = nullptr;
};

using Holders = std::map<std::string, std::vector<Holder>>;  // by GPU type

cluster::Link between(const cluster::Fleet& fleet, const Holder& a, const Holder& b) {
  return a.node == b.node ? fleet.nodes[a.node].host_link : fleet.between(a.node, b.node);
}

// Types that share nodes talk inside of these, others through the network.
Link link_between(const cluster::Fleet& fleet, const std::vector<Holder>& from, const std::vector<Holder>& to,
                  const Deployment& deployment) {
  cluster::Link inside;  // bandwidth 0: none yet
  cluster::Link outside;
  int pairs_inside = 0;
  for (const Holder& a : from) {
    for (const Holder& b : to) {
      cluster::Link& of = a.node == b.node ? inside : outside;
      pairs_inside += a.node == b.node ? 1 : 0;
      const cluster::Link link = between(fleet, a, b);
      of = of.bandwidth.value() > 0 ? cluster::slower_of(of, link) : link;
    }
  }
  const cluster::Link& used = pairs_inside > 0 ? inside : outside;
  Link link;
  link.bytes_per_second = used.bandwidth.value() > 0 ? used.bandwidth.value() : kNever;
  link.seconds_per_message = deployment.message_seconds + to_seconds(used.latency);
  link.gpu_seconds = deployment.message_gpu_seconds;
  link.lanes = pairs_inside > 0 ? pairs_inside : static_cast<int>(std::min(from.size(), to.size()));
  return link;
}

}  // namespace

FleetClasses classes_of(const cluster::Fleet& fleet, const Deployment& deployment) {
  Holders holders;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    for (const cluster::DeviceGroup& group : fleet.nodes[n].groups) holders[group.device.name].push_back({n, &group});
  }
  FleetClasses result;
  for (const auto& [name, of_type] : holders) {
    GpuClass& added = result.classes.emplace_back();
    added.name = name;
    added.count = 0;
    for (const Holder& holder : of_type) {
      added.count += holder.group->count;
      const cluster::GpuType& device = holder.group->device;
      added.memory = std::min(added.memory, (device.memory - device.reserved).as_double());
    }
  }
  result.links = {holders.size(), holders.size()};
  int from = 0;
  for (const auto& [name, senders] : holders) {
    int to = 0;
    for (const auto& [other, receivers] : holders) {
      if (from != to) result.links(from, to) = link_between(fleet, senders, receivers, deployment);
      ++to;
    }
    ++from;
  }
  return result;
}

}  // namespace tangram::disaggregate
