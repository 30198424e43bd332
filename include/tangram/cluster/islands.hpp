// Which GPUs are alike. Goes in: a fleet and a tolerance. Comes out: for each level of the link hierarchy the islands
// (sets of GPUs alike in compute, memory and connectivity, connected by fast links) and the classes of interchangeable
// islands, in which the planner only counts. Metrics decide, not names.
#pragma once

#include <iterator>
#include <string>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/cluster/fleet.hpp"

namespace tangram::cluster {

/// GPUs [first, first + count) of one group of one node: the smallest piece that stays together under the fast link.
struct IslandMember {
  std::size_t node = 0;
  std::size_t group = 0;
  int first_gpu = 0;  ///< index among the node's GPUs (groups in order), as the runtime numbers them
  int count = 0;
  bool operator==(const IslandMember&) const = default;
};

struct Island {
  int id = 0;
  int island_class = 0;
  std::vector<IslandMember> members;
  std::string reason;  ///< why these GPUs are together and apart from others, for people
};

/// Islands of the same number of alike members with the same links inside and to every other island, within the
/// tolerance: exchanging two of them changes no link, so that a planner only counts them. A member's share of its
/// node's network is its share of the node's GPUs.
struct IslandClass {
  int id = 0;
  std::string alias;  ///< short, unique within the level: "A100-80GB-SXM@rack=r1"
  GpuType device;     ///< the slowest and smallest of its members in every metric, so that plans hold on all
  int gpus_per_member = 0;
  int members_per_island = 0;
  std::vector<int> islands;  ///< ids, ascending
  Link inside_member;        ///< between GPUs of a member, per GPU
  Link between_members;      ///< inside one island, per member; islands of one member: as between_islands
  Link between_islands;      ///< between members of different islands of the class, per member; worst case. A class of
                             ///< one island: as between_members; of one member: its share of the network
  Dollars price_per_gpu_hour{0};  ///< of its dearest member; node price / GPUs of the node, else the GPU type's

  [[nodiscard]] int member_count() const { return members_per_island * static_cast<int>(islands.size()); }
  [[nodiscard]] int gpu_count() const { return member_count() * gpus_per_member; }
};

/// One cut through the hierarchy: finer levels have more, better connected islands. An island is a clique: its slowest
/// pair of members decides. Each cluster of alike members is cut at its own tiers of links, counted from the coarsest.
struct IslandLevel {
  std::string name;      ///< "host", "rack", "zone", ...: what the links that still hold an island together are;
                         ///< "fleet": all alike members, "node": nothing is joined. Unique in the hierarchy
  double threshold = 0;  ///< slowest link (bytes/s per member) that still joins two members; 0: none does
  std::vector<Island> islands;
  std::vector<IslandClass> classes;
  std::vector<Link> links;  ///< classes x classes, row-major: slowest link between a member of one and a
                            ///< different member of the other, per member
  [[nodiscard]] const Link& link(int a, int b) const { return at(links, a * std::ssize(classes) + b); }
};

struct IslandHierarchy {
  double tolerance = 0.10;
  std::vector<IslandLevel> levels;  ///< finest first; at least one; equal cuts are not repeated
};

/// Agglomerative clustering with complete linkage on log metrics, then on the links of alike members, ranked by the
/// time of a 32 MiB message. Members that only their host's name tells apart are counted, so that the cost follows the
/// d distinct ones: about O(d^2) memory and time per level; d is the number of nodes if links are measured pair by
/// pair. tolerance: largest relative difference of any metric inside an island, in [0, 1).
[[nodiscard]] IslandHierarchy find_islands(const Fleet& fleet, double tolerance);

/// What software does to save time, whatever the job. The first three are what NCCL and the runtimes of today do;
/// without one of them the model shows what it brings. The others some trainers do that measurements are of.
struct ExecutionMethods {
  bool hierarchical = true;   ///< collectives over several members run inside them first
  bool overlapped = true;     ///< exchanges run beside compute where nothing waits for them
  bool gathered_once = true;  ///< ZeRO-3 gathers in place, once for a recomputed pass and the backward pass after it
  /// A compiler that sees the whole step keeps nothing that it recomputes, and casts and reduces tensor by tensor.
  bool scheduled = false;
  bool early_stop = false;    ///< recompute leaves out what backward does not read
  bool output_again = false;  ///< what recomputes the core of attention runs its output projection again, too
  /// Bytes that ZeRO-3 gathers at once as a unit's pass begins, which waits for them, as nothing is gathered ahead: in
  /// XLA what it combines where loops are not unrolled (openxla.org/xla/gpu_optimization_levels). 0: all is ahead.
  double gather_barrier = 0;
  /// ZeRO-3 gathers a unit's parameters between two units' backward passes, behind the exchange of gradients, not
  /// beside compute: PyTorch's BackwardPrefetch.BACKWARD_POST.
  bool gathers_between = false;
  /// What sequence parallelism gathers and scatters is copied between the order of ranks and that of positions:
  /// PyTorch's functional collectives along another dimension than the first
  /// (torch.distributed._functional_collectives).
  bool copied_exchanges = false;
  /// Exchanges of tensor parallelism hide beside products of forward passes alone: PyTorch's asynchronous tp, which
  /// made forward passes of Llama 3 up to 29 % faster and whole steps 8 % (discuss.pytorch.org/t/209487, its authors).
  bool tensor_forward_alone = false;
  /// Each of two optimizers, of experts and of all other parameters, gathers the parameters of both after its step,
  /// unless they are gathered beside the next pass: Megatron-Core's (distrib_optimizer.py, step_with_ready_grads).
  bool gathered_by_each_optimizer = false;
  bool reduced_once = false;  ///< ZeRO-3 adds whole gradients up until the last microbatch: PyTorch's no_sync
  bool operator==(const ExecutionMethods&) const = default;
};

/// GPUs on which one stage runs: `nodes` members (or parts of members) with `per_node` GPUs each.
struct DeviceShape {
  GpuType device;
  int nodes = 1;
  int per_node = 1;
  Link intra;  ///< between GPUs of a member, per GPU
  Link inter;  ///< between the members, per member, already reduced to this shape's share of the network cards
  ExecutionMethods methods = {};

  [[nodiscard]] int gpus() const { return nodes * per_node; }
  bool operator==(const DeviceShape&) const = default;
};

/// Shape of `gpus` GPUs in a class: a part of a member, or whole members.
[[nodiscard]] DeviceShape make_shape(const IslandClass& island_class, int gpus);

}  // namespace tangram::cluster
