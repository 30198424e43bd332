#include "placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>

#include "reason.hpp"
#include "tangram/base/at.hpp"

namespace tangram::accuracy {
namespace {

/// From here on a node has a card for each GPU, which its neighbours do not use: 8 x 50 Gbit/s and more.
constexpr double kOneCard = 400e9 / 8;

/// GPUs of a part on each node it touches.
std::map<int, int> count_by_node(const std::vector<Gpu>& gpus) {
  std::map<int, int> counts;
  for (const Gpu& gpu : gpus) ++counts[gpu.node];
  return counts;
}

/// The largest number of GPUs that all nodes of a part can be divided into.
cluster::DeviceShape shape_of(const std::vector<Gpu>& gpus, const Machine& machine) {
  const auto counts = count_by_node(gpus);
  int per_node = 0;
  for (const auto& [node, count] : counts) per_node = std::gcd(per_node, count);
  cluster::DeviceShape shape;
  shape.device = *gpus.front().device;
  shape.per_node = per_node;
  shape.nodes = static_cast<int>(gpus.size()) / per_node;
  shape.intra = at(machine.nodes, gpus.front().node).fabric;
  for (const auto& [node, count] : counts) {
    const NodeFacts& facts = at(machine.nodes, node);
    const double share = static_cast<double>(per_node) / facts.gpus;
    const BytesPerSecond rate(facts.network.bandwidth.value() * share);
    if (node == counts.begin()->first || rate < shape.inter.bandwidth) shape.inter = {rate, facts.network.latency};
  }
  return shape;
}

/// Replicas of one size on one GPU type.
struct ReplicaGroup {
  std::vector<Gpu> gpus;
  std::size_t replica_size = 0;
  int replicas = 0;
};

/// Groups of so many ranks each; one of all where these do not divide them.
int groups_of(int ranks, int each) { return each > 0 && ranks % each == 0 ? ranks / each : 1; }

Part part_of(const ReplicaGroup& group, cost::Degrees degrees, int sharding_group, int microbatch,
             const Machine& machine) {
  Part part;
  part.shape = shape_of(group.gpus, machine);
  degrees.tp = static_cast<int>(group.replica_size) / degrees.cp;
  degrees.dp = group.replicas;
  degrees.dp_replicate = groups_of(group.replicas, sharding_group);
  degrees.ep = std::min(degrees.ep, degrees.gpus());
  degrees.sequence_parallel = degrees.sequence_parallel && degrees.tp > 1;
  part.degrees = degrees;
  part.samples = microbatch * group.replicas;
  return part;
}

/// Far above any fleet; keeps a slip of the pen from filling the memory.
constexpr std::int64_t kMostGpus = 1'000'000;

}  // namespace

Expected<Machine> build_machine(const Measurement& m, std::span<const cluster::GpuType> devices) {
  Machine machine;
  for (const GpuGroup& group : m.gpus) {
    const cluster::GpuType* device = find_device(group.type, devices);
    if (device == nullptr) return fail(reason(fmt::format("no GPU type of the catalogue is a \"{}\"", group.type)));
    const int per_node = gpus_per_node(group, *device);
    if (per_node <= 0) return fail(reason("no number of GPUs is printed"));
    if (std::ssize(machine.gpus) + group.count > kMostGpus) {
      return fail(reason("more than 1,000,000 GPUs are printed"));
    }
    const cluster::Link network = node_network(m, group, *device, per_node);
    const cluster::Link fabric = node_fabric(m, *device);
    for (int i = 0; i < group.count; ++i) {
      if (i % per_node == 0) machine.nodes.push_back({network, fabric, per_node});
      machine.gpus.push_back({device, static_cast<int>(machine.nodes.size()) - 1});
    }
  }
  if (machine.gpus.empty()) return fail(reason("no GPUs are printed"));
  return machine;
}

Expected<std::vector<Part>> make_parts(const std::vector<Replica>& replicas, cost::Degrees common, int sharding_group,
                                       int microbatch, const Machine& machine) {
  std::vector<ReplicaGroup> groups;
  for (const Replica& replica : replicas) {
    const auto other = [&](const Gpu& gpu) { return gpu.device != replica.front().device; };
    if (std::ranges::any_of(replica, other)) return fail(reason("a replica of a stage spans two GPU types"));
    const auto alike = [&](const ReplicaGroup& group) {
      return group.gpus.front().device == replica.front().device && group.replica_size == replica.size();
    };
    auto group = std::ranges::find_if(groups, alike);
    if (group == groups.end()) group = groups.insert(group, ReplicaGroup{{}, replica.size(), 0});
    group->gpus.insert(group->gpus.end(), replica.begin(), replica.end());
    ++group->replicas;
  }
  std::vector<Part> parts;
  parts.reserve(groups.size());
  for (const ReplicaGroup& group : groups) parts.push_back(part_of(group, common, sharding_group, microbatch, machine));
  return parts;
}

void connect(Stage& from, std::span<const Gpu> source, std::span<const Gpu> target, const Machine& machine) {
  const int node = source.front().node;
  const auto here = [&](const Gpu& gpu) { return gpu.node == node; };
  from.next_inside = std::ranges::all_of(source, here) && std::ranges::all_of(target, here);
  if (from.next_inside) {
    from.to_next = at(machine.nodes, node).fabric;
    return;
  }
  const auto outward = [&](std::span<const Gpu> gpus) {
    const NodeFacts& facts = at(machine.nodes, gpus.front().node);
    const auto used = std::ranges::count_if(gpus, [&](const Gpu& gpu) { return gpu.node == gpus.front().node; });
    const double part = facts.network.bandwidth.value() >= kOneCard ? static_cast<double>(used) / facts.gpus : 1;
    return cluster::Link{BytesPerSecond(facts.network.bandwidth.value() * part), facts.network.latency};
  };
  const cluster::Link out = outward(source);
  const cluster::Link in = outward(target);
  from.to_next = out.bandwidth < in.bandwidth ? out : in;
  from.to_next.latency = std::max(out.latency, in.latency);
}

}  // namespace tangram::accuracy
