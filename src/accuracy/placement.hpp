// Which GPUs a stage of a measured plan ran on. Goes in: the fleet of a measurement as one row of GPUs, node by node.
// Comes out: parts (replicas on one GPU type) with their shapes.
#pragma once

#include <span>
#include <vector>

#include "infer.hpp"
#include "tangram/accuracy/experiment.hpp"

namespace tangram::accuracy {

struct Gpu {
  const cluster::GpuType* device = nullptr;
  int node = 0;
};

struct NodeFacts {
  cluster::Link network;
  cluster::Link fabric;  ///< between its GPUs
  int gpus = 0;
};

/// All GPUs in the order of the groups, node by node.
struct Machine {
  std::vector<Gpu> gpus;
  std::vector<NodeFacts> nodes;
};

[[nodiscard]] Expected<Machine> build_machine(const Measurement& measurement,
                                              std::span<const cluster::GpuType> devices);

/// One replica of a stage: its GPUs, one for each tp and cp rank.
using Replica = std::vector<Gpu>;

/// Replicas of one size on one GPU type become one part. `common`: cp, ep and sequence parallelism, of which a part
/// takes what it can; its tp follows from the size. `sharding_group`: replicas that ZeRO shards over, where their
/// number is a multiple of it; 0: all. `microbatch`: samples of one replica.
[[nodiscard]] Expected<std::vector<Part>> make_parts(const std::vector<Replica>& replicas, cost::Degrees common,
                                                     int sharding_group, int microbatch, const Machine& machine);

/// What carries the activations from one stage to the next: inside a node its fabric, else the slower network.
void connect(Stage& from, std::span<const Gpu> source, std::span<const Gpu> target, const Machine& machine);

}  // namespace tangram::accuracy
