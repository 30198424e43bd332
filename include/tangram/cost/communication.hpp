// Time of collectives on a tiered topology. Goes in: bytes and a group of ranks spread over members of a shape.
// Comes out: seconds. alpha-beta per tier; algorithm by size and topology. Pure functions.
//
// Symbols: S bytes of the full tensor, n ranks, B bytes/s of one direction, alpha seconds per step.
//   ring all-reduce      2(n-1) alpha + 2(n-1)/n S/B
//   ring all-gather, reduce-scatter  (n-1) alpha + (n-1)/n S/B
//   tree all-reduce      2 ceil(log2 n) alpha + 2 S/B
//   all-to-all           (n-1) alpha + (n-1)/n S/B            (S: bytes that one rank holds)
//   hierarchical: reduce-scatter inside, the same collective on S/g between members, all-gather inside
// Source: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; NCCL's bus-bandwidth conventions (nccl-tests PERFORMANCE.md).
#pragma once

#include "tangram/cluster/islands.hpp"

namespace tangram::cost {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kAllToAll };

/// A process group inside a shape: `inside` ranks in each of `members` members; concurrent groups of the same kind
/// share the network cards, so that each gets 1/`sharing` of the member's bandwidth (NIC-sharing law).
struct Group {
  int inside = 1;
  int members = 1;
  int sharing = 1;
  [[nodiscard]] int size() const { return inside * members; }
};

/// Seconds of one collective. `bytes` is S of the header comment.
[[nodiscard]] double collective_seconds(Collective kind, double bytes, const Group& group,
                                        const cluster::DeviceShape& shape);

/// The group of `degree` ranks whose neighbours are `stride` ranks apart, in a shape whose ranks are numbered member by
/// member: how many of them share a member, how many members it spans, how many such groups share a network card.
[[nodiscard]] Group place_group(int degree, int stride, const cluster::DeviceShape& shape);

/// Aggregate one-direction bandwidth with which the whole shape talks to the outside over a per-member link.
[[nodiscard]] BytesPerSecond aggregate_bandwidth(const cluster::Link& per_member, int members);

}  // namespace tangram::cost
