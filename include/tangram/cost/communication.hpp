// Time of collectives on a tiered topology. Goes in: bytes and a group of ranks spread over members of a shape.
// Comes out: seconds. alpha-beta per tier; algorithm by size and topology. Pure functions.
//
// Symbols: S bytes of the full tensor, n ranks, B bytes/s of one direction, alpha seconds per step.
//   ring all-reduce      2(n-1) alpha + 2(n-1)/n S/B
//   ring all-gather, reduce-scatter  (n-1) alpha + (n-1)/n S/B
//   tree all-reduce      2 ceil(log2 n) alpha + 2 S/B
//   all-to-all           (n-1) alpha + (n-1)/n S/B            (S: bytes that one rank holds)
//   hierarchical: reduce-scatter inside, the same collective on S/g between members, all-gather inside
// A collective takes the cheapest of these that applies, and kCollectiveCall before it. B is the link's raw bandwidth
// (datasheet, or a point-to-point test) times the share that collectives were measured to sustain on that kind of link.
// Messages are sent in chunks, one after the other, so that short ones do not come near B: where all others' bytes take
// t = (n-1)/n S/B, sqrt(t r) is added once, with the link's ramp r. Half of B is reached with r B bytes (n_1/2).
// Of the n steps of a ring one is a rank's own: it copies its share, or adds to it, which takes kOwnStep S/n/B where
// the link is nearly as fast as that. Source: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005 (algorithms); Hockney,
// Parallel Computing 20(3), 1994 (n_1/2); NCCL's bus-bandwidth conventions (nccl-tests PERFORMANCE.md).
#pragma once

#include <cstdint>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/strategy.hpp"

namespace tangram::cost {

/// Share of the raw one-direction bandwidth that large collectives reach. Inside a member over PCIe, as over NVLink
/// with all steps taken together: all-reduce bus bandwidth of 229 GB/s over 300 on 8 x A100 with NVSwitch (vTrain,
/// MICRO 2024, all-reduce tables) and 370 over 450 on 8 x H100 (ASTRA-sim's HGX-H100 validated configuration): 0.76 and
/// 0.82. Between members: one card alone reaches 0.88-0.90 (10.2-10.5 GiB/s over 12.5 GB/s on nodes of 8 x A100; Mist,
/// EuroSys 2025, all-gather profiles), eight cards at once less: fitted to iteration times on up to 3,072 A100
/// (scripts/calibrate), which data parallelism over them decides.
inline constexpr double kInsideShare = 0.77;
inline constexpr double kNetworkShare = 0.67;

/// The share where GPUs have links to each other (NVLink), and what the step takes that needs none, in times of a step
/// that does: those with which NCCL on 2, 4 and 8 GPUs from A100 to GB300 is met best in the mean
/// (configs/measurements/kernels/collectives.json). Pairs reach 0.71 to 0.77 of the bus bandwidth of eight.
inline constexpr double kPeerShare = 0.84;
inline constexpr double kOwnStep = 0.3;

/// Seconds from the call of a collective to its first byte: 4 to 9 us on eight GPU types from A100 to GB300 and over
/// PCIe (NCCL 2.27 to 2.29, 1 to 512 MiB on 2 to 8 GPUs: configs/measurements/kernels/collectives.json).
inline constexpr double kCollectiveCall = 5e-6;

enum class Collective : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll };

/// A process group inside a shape: `inside` ranks in each of `members` members; concurrent groups of the same kind
/// share the network cards, so that each gets 1/`sharing` of the member's bandwidth (NIC-sharing law).
struct Group {
  int inside = 1;
  int members = 1;
  int sharing = 1;
  [[nodiscard]] int size() const { return inside * members; }
  bool operator==(const Group&) const = default;
};

/// Seconds of one collective; 0 for a group of one or no bytes. `bytes` is S of the header
/// comment. NIC-sharing law: a ring through members whose cards carry `sharing` groups sees B_member / sharing each
/// (all-gather measurements of Mist on 2 and 4 nodes of A100 and V100 follow it within a few percent).
[[nodiscard]] double collective_seconds(Collective kind, double bytes, const Group& group,
                                        const cluster::DeviceShape& shape);

/// Share of the network's bandwidth that exchanges of tokens reach: 40.7 to 44.8 GB/s of 50 a GPU for an all-to-all
/// over 16 to 64 H100, more for HybridEP (DeepEP's repository, docs of HybridEP: dispatch of 4,096 tokens of 7,168
/// values).
inline constexpr double kDispatchShare = 0.85;

/// Experts of a token, drawn evenly from so many of the groups of neighbours that all experts are in, drawn evenly
/// (DeepSeek-V2, arXiv 2405.04434, section 2.2.2); one of one: from all.
struct TokenChoice {
  double experts = 1;
  int groups = 1;
  int chosen_groups = 1;
};

/// Of `places` that hold equally many experts, neighbours together, those but one's own that a token is sent to, in the
/// mean.
[[nodiscard]] double other_places(int places, const TokenChoice& choice);

/// Seconds of sending `bytes` of tokens to their experts, where a token crosses to a node once and to a GPU once. The
/// way back takes as long.
[[nodiscard]] double dispatch_seconds(double bytes, const TokenChoice& choice, const Group& group,
                                      const cluster::DeviceShape& shape);

/// Kernels that run beside communication slow down, and it with them: a share of the time that both run is lost.
/// Galvatron measured 1.1256 on 8 x A100 (its overlap coefficient).
inline constexpr double kOverlapLoss = 0.126;

/// Seconds that `communication` adds to `compute` it runs beside: what sticks out, and the loss while both run.
[[nodiscard]] double seconds_beside(double communication, double compute, double loss = kOverlapLoss);

/// The group of `degree` ranks whose neighbours are `stride` ranks apart, in a shape whose ranks are numbered member by
/// member: how many of them share a member, how many members it spans, how many such groups share a network card.
/// Groups that do not align with the members are described by the one that crosses most of them.
[[nodiscard]] Group place_group(int degree, int stride, const cluster::DeviceShape& shape);

/// The groups that the collectives of a stage run in.
struct ProcessGroups {
  Group tensor;
  Group context;
  Group data;    ///< dp x cp: reduces everything but experts
  Group expert;  ///< of the all-to-all
  Group expert_tensor;
  Group expert_data;    ///< replicas of an expert
  Group shards;         ///< of `data`, neighbours that share what ZeRO shards: all, or one of dp_replicate parts
  Group copies;         ///< of `data`, the ranks with equal shards
  Group expert_shards;  ///< the same of `expert_data`
  Group expert_copies;
};

/// Ranks are numbered tp, cp, dp from the inside out; those of experts expert-tp, ep, replicas.
[[nodiscard]] ProcessGroups process_groups(const Degrees& degrees, const cluster::DeviceShape& shape);

/// Aggregate one-direction bandwidth with which the whole shape talks to the outside over a per-member link.
[[nodiscard]] BytesPerSecond aggregate_bandwidth(const cluster::Link& per_member, int members);

}  // namespace tangram::cost
