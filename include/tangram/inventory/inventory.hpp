// The fleet as other programs already report it. Goes in: what Slurm, Kubernetes and nvidia-smi print, logs of
// nccl-tests, or this machine. Comes out: the nodes that can be planned on, those left out with the reason, and
// cluster.json.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/gpu.hpp"
#include "tangram/profiles/import.hpp"

namespace tangram::inventory {

struct Request {
  std::vector<profiles::SourceFile> files;
  std::map<std::string, std::string, std::less<>> gpu_names;  ///< what a report calls a GPU: its catalogue name
};

/// GPUs of one type in one node.
struct FoundGpus {
  const cluster::GpuType* device = nullptr;  ///< of the catalogue that was given
  int count = 0;
  int joined = 0;  ///< GPUs that the fabric joins, dividing count; 1: PCIe alone; 0: not told
  std::optional<BytesPerSecond> measured_link;
};

struct FoundNetwork {
  int cards = 0;  ///< 0: not told
  BytesPerSecond per_card{0};
  std::string kind;                    ///< "infiniband", "roce", "efa", "slingshot", "ethernet"; or empty
  std::optional<Nanoseconds> latency;  ///< needed where there is no kind
};

struct FoundNode {
  std::string name;
  std::vector<FoundGpus> gpus;
  int cards = 0;                          ///< network cards for GPU traffic that were seen; 0: not told
  std::optional<FoundNetwork> network;    ///< of measurements, or the port's own rate
  std::optional<cluster::Link> host_bus;  ///< where it is slower than the GPUs' own PCIe
  std::map<std::string, std::string> labels;
};

struct LeftOut {
  std::string node;  ///< or "node, GPU 3"
  std::string reason;
  bool operator==(const LeftOut&) const = default;
};

struct Inventory {
  std::string name;
  std::vector<FoundNode> nodes;
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes;  ///< what else was found
};

/// `scontrol show nodes`, as text (also one line a node) or --json. Each file by its content.
[[nodiscard]] Expected<Inventory> from_slurm(const Request& request, std::span<const cluster::GpuType> devices);

/// `kubectl get nodes -o json`, with the labels of GPU feature discovery or of AMD's node labeller.
[[nodiscard]] Expected<Inventory> from_kubernetes(const Request& request, std::span<const cluster::GpuType> devices);

/// `nvidia-smi -q -x` (HOST.xml) and `nvidia-smi topo -m` (HOST.txt): a host is called what its file is.
[[nodiscard]] Expected<Inventory> from_nvidia_smi(const Request& request, std::span<const cluster::GpuType> devices);

/// Where probe looks.
struct ProbePlaces {
  std::string nvml = "libnvidia-ml.so.1";  ///< NVIDIA's management library, opened at run time
  std::string sys = "/sys";
};

/// This machine, from NVIDIA's driver, hwloc (CPUs, PCIe) and the ports of its RDMA cards. Of the request only names of
/// GPUs count.
[[nodiscard]] Expected<Inventory> probe(const Request& request, std::span<const cluster::GpuType> devices,
                                        const ProbePlaces& places = {});

/// What a person says: "4x8xH100-80GB-SXM" are 4 nodes of 8 GPUs, "8xH100-80GB-SXM" is one. Nodes are called after the
/// GPU type and numbered.
[[nodiscard]] Expected<Inventory> described(const std::vector<std::string>& nodes,
                                            std::span<const cluster::GpuType> devices);

/// What --network says: cards, the rate of each, the kind; of all nodes (empty `type`), or of those with this GPU type.
struct NetworkChoice {
  std::string type;
  FoundNetwork network;
};

/// "8x400Gbit,infiniband", "H100-80GB-SXM=8x400Gbit,infiniband"; without "8x": as many cards as were seen, at least 1.
[[nodiscard]] Expected<NetworkChoice> parse_network(const std::string& text, std::span<const cluster::GpuType> devices);

/// Gives every node that has none the last choice that fits it.
void apply_network(Inventory& inventory, const std::vector<NetworkChoice>& choices);

/// Bandwidths that nccl-tests reached, of the nodes with the GPU types in the logs: between nodes, where the logs are
/// of several nodes, else inside them.
[[nodiscard]] Expected<void> apply_measured_links(Inventory& inventory, const std::vector<profiles::SourceFile>& logs,
                                                  std::span<const cluster::GpuType> devices);

/// tangram.cluster/1, nodes alike as ranges of names. Fails where several nodes have no network.
[[nodiscard]] Expected<std::string> write_cluster(const Inventory& inventory);

}  // namespace tangram::inventory
