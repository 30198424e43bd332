#include "tangram/cost/communication.hpp"

#include <algorithm>
#include <cmath>

namespace tangram::cost {
namespace {

/// One ring or tree: ranks, seconds per step, bytes/s per direction, seconds that the link's ramp is long, seconds for
/// each byte of a rank's own share.
struct Tier {
  int ranks = 1;
  double alpha = 0;
  double rate = 0;
  double ramp = 0;
  double own = 0;

  [[nodiscard]] double others() const { return ranks - 1.0; }
};

/// What chunks add to `seconds` of a link at its full rate: the shorter the message, the more of it is the way there.
double chunking(double seconds, const Tier& tier) { return std::sqrt(seconds * tier.ramp); }

/// Seconds in which a rank's link moves the bytes of all others; of a rank alone, who needs no link, none.
double moving(const Tier& tier, double bytes) {
  return tier.ranks > 1 ? tier.others() / tier.ranks * bytes / tier.rate : 0;
}

/// A step of each rank has no link: it copies its own share, or adds to it.
double own_step(const Tier& tier, double bytes) { return tier.ranks > 1 ? bytes / tier.ranks * tier.own : 0; }

double ring_half(const Tier& tier, double bytes) {  // all-gather or reduce-scatter
  const double seconds = moving(tier, bytes);
  return tier.others() * tier.alpha + seconds + chunking(seconds, tier) + own_step(tier, bytes);
}

double ring_all_reduce(const Tier& tier, double bytes) {
  const double seconds = moving(tier, bytes);
  return 2 * (tier.others() * tier.alpha + seconds) + chunking(seconds, tier) + own_step(tier, bytes);
}

double tree_all_reduce(const Tier& tier, double bytes) {
  if (tier.ranks <= 1) return 0;
  int depth = 0;
  while ((1LL << depth) < tier.ranks) ++depth;
  const double seconds = bytes / tier.rate;
  return 2 * (depth * tier.alpha + seconds) + chunking(seconds, tier);
}

double all_reduce(const Tier& tier, double bytes) {
  return std::min(ring_all_reduce(tier, bytes), tree_all_reduce(tier, bytes));
}

/// Else over the host's bus.
bool has_peer_links(const cluster::DeviceShape& shape) {
  const double linked = shape.device.peer_link.bandwidth.value();
  return linked > 0 && shape.intra.bandwidth > shape.device.pcie.bandwidth;
}

Tier inside_tier(const Group& group, const cluster::DeviceShape& shape) {
  const double raw = cluster::bandwidth_among(shape.device, shape.intra, group.inside).value();
  const bool peers = has_peer_links(shape);
  const double rate = raw * (peers ? kPeerShare : kInsideShare);
  return {group.inside, to_seconds(shape.intra.latency), rate, to_seconds(shape.intra.ramp),
          peers ? kOwnStep / rate : 0};
}

/// All members over the cards of each; `rate` is what one of the `sharing` groups gets.
Tier network_tier(const Group& group, const cluster::DeviceShape& shape) {
  return {group.members, to_seconds(shape.inter.latency), shape.inter.bandwidth.value() * kNetworkShare / group.sharing,
          to_seconds(shape.inter.ramp)};
}

/// The collective cannot be split into one inside the members and one between them.
bool is_flat(const Group& group, const cluster::DeviceShape& shape) {
  return group.members == 1 || group.inside == 1 || !shape.methods.hierarchical;
}

/// All ranks in one ring or tree: the slowest hop decides.
Tier flat_tier(const Group& group, const cluster::DeviceShape& shape) {
  const Tier inside = inside_tier(group, shape);
  const Tier network = network_tier(group, shape);
  if (group.members == 1) return inside;
  if (group.inside == 1) return network;
  return {group.size(), std::max(inside.alpha, network.alpha), std::min(inside.rate, network.rate), network.ramp};
}

double gather_or_scatter(double bytes, const Group& group, const cluster::DeviceShape& shape) {
  const double flat = ring_half(flat_tier(group, shape), bytes);
  if (is_flat(group, shape)) return flat;
  // The `inside` ranks of a member run one lane each; the lanes share the cards, so that together they move `bytes`.
  const double layered = ring_half(inside_tier(group, shape), bytes) + ring_half(network_tier(group, shape), bytes);
  return std::min(flat, layered);
}

double reduce_everywhere(double bytes, const Group& group, const cluster::DeviceShape& shape) {
  const double flat = all_reduce(flat_tier(group, shape), bytes);
  if (is_flat(group, shape)) return flat;
  const double layered =
      2 * ring_half(inside_tier(group, shape), bytes) + all_reduce(network_tier(group, shape), bytes);
  return std::min(flat, layered);
}

/// The network as exchanges of tokens use it.
Tier dispatch_tier(const Group& group, const cluster::DeviceShape& shape) {
  Tier network = network_tier(group, shape);
  network.rate *= kDispatchShare / kNetworkShare;
  return network;
}

double all_to_all(double bytes, const Group& group, const cluster::DeviceShape& shape) {
  const Tier inside = inside_tier(group, shape);
  const Tier network = dispatch_tier(group, shape);
  const double n = group.size();
  const double g = group.inside;
  const double out = n - g;  // ranks in other members
  const double network_bytes = group.members > 1 ? g * bytes * out / n / network.rate : 0;
  const double inside_bytes = g > 1 ? bytes * (g - 1) / n / inside.rate : 0;
  const double direct = (g - 1) * inside.alpha + out * network.alpha +
                        std::max(inside_bytes + chunking(inside_bytes, inside), network_bytes) + bytes / n * inside.own;
  if (is_flat(group, shape)) return direct;
  // Two phases: to the right lane inside the member, then along the lanes; fewer messages, more bytes inside.
  const double phased = ring_half(inside, bytes) + (group.members - 1) * network.alpha + network_bytes;
  return std::min(direct, phased);
}

}  // namespace

double collective_seconds(Collective kind, double bytes, const Group& group, const cluster::DeviceShape& shape) {
  if (group.size() <= 1 || !(bytes > 0)) return 0;
  double seconds = 0;
  switch (kind) {
    case Collective::kAllReduce: seconds = reduce_everywhere(bytes, group, shape); break;
    case Collective::kAllGather:
    case Collective::kReduceScatter: seconds = gather_or_scatter(bytes, group, shape); break;
    case Collective::kAllToAll: seconds = all_to_all(bytes, group, shape); break;
  }
  return kCollectiveCall + seconds;
}

namespace {

double choose(int n, int k) {
  double ways = 1;
  for (int i = 0; i < k; ++i) ways *= static_cast<double>(n - i) / (k - i);
  return ways;
}

/// That a token goes to none of the experts of a place that holds `held` whole groups. Of more groups than models have
/// the place has as many that are chosen as in the mean: binomials would leave the range of doubles.
double passes_groups(int held, const TokenChoice& choice) {
  constexpr int kMostCounted = 64;
  if (choice.groups > kMostCounted) return std::pow(1 - static_cast<double>(held) / choice.groups, choice.experts);
  double passed = 0;
  for (int chosen = 0; chosen <= std::min(held, choice.chosen_groups); ++chosen) {  // of the place's groups
    const int elsewhere = choice.chosen_groups - chosen;
    if (elsewhere > choice.groups - held) continue;
    const double drawn =
        choose(held, chosen) * choose(choice.groups - held, elsewhere) / choose(choice.groups, choice.chosen_groups);
    passed += drawn * std::pow(1 - static_cast<double>(chosen) / choice.chosen_groups, choice.experts);
  }
  return passed;
}

/// The same of a place that holds a part of one group.
double passes_part(double part, const TokenChoice& choice) {
  const double drawn = static_cast<double>(choice.chosen_groups) / choice.groups;
  return 1 - drawn + drawn * std::pow(1 - part / choice.chosen_groups, choice.experts);
}

}  // namespace

double other_places(int places, const TokenChoice& choice) {
  const bool whole = places <= choice.groups;
  const double passed = whole ? passes_groups(choice.groups / places, choice)
                              : passes_part(static_cast<double>(choice.groups) / places, choice);
  return (places - 1) * (1 - passed);
}

double dispatch_seconds(double bytes, const TokenChoice& choice, const Group& group,
                        const cluster::DeviceShape& shape) {
  if (group.size() <= 1 || !(bytes > 0)) return 0;
  const Tier inside = inside_tier(group, shape);
  const Tier network = dispatch_tier(group, shape);
  // A place gets as many tokens of a rank as each other: the rank's own are copied.
  const double others = other_places(group.size(), choice);
  const double to_gpus = bytes * others * (1 / inside.rate + inside.own / (group.size() - 1));
  const double to_nodes =
      group.members > 1 ? group.inside * bytes * other_places(group.members, choice) / network.rate : 0;
  const double latency = inside.alpha + (group.members > 1 ? network.alpha : 0);
  return std::max({latency + to_gpus, latency + to_nodes, to_seconds(shape.device.compute.kernel_launch)});
}

double seconds_beside(double communication, double compute, double loss) {
  const double together = std::max(0.0, std::min(communication, compute));
  return communication - together + loss * together;
}

Group place_group(int degree, int stride, const cluster::DeviceShape& shape) {
  const int per_member = shape.per_node;
  const int span = degree * stride;
  if (degree <= 1) return {};
  if (shape.nodes == 1 || (span <= per_member && per_member % span == 0)) return {degree, 1, 1};
  if (stride >= per_member) return {1, degree, per_member};
  if (per_member % stride == 0 && span % per_member == 0) {
    const int inside = per_member / stride;
    return {inside, degree / inside, stride};
  }
  // Unaligned: a group may begin anywhere in a member, so it touches one member more than its span fills.
  const int touched = std::min({shape.nodes, degree, (span + per_member - 2) / per_member + 1});
  const int inside = (degree + touched - 1) / touched;
  const int members = (degree + inside - 1) / inside;
  return {inside, members, std::max(1, per_member / inside)};
}

ProcessGroups process_groups(const Degrees& degrees, const cluster::DeviceShape& shape) {
  const int experts = degrees.ep * degrees.etp;
  const int expert_shards = degrees.edp() / degrees.expert_replicate();
  return {place_group(degrees.tp, 1, shape),
          place_group(degrees.cp, degrees.tp, shape),
          place_group(degrees.dp * degrees.cp, degrees.tp, shape),
          place_group(degrees.ep, degrees.etp, shape),
          place_group(degrees.etp, 1, shape),
          place_group(degrees.edp(), experts, shape),
          place_group(degrees.dp_shard() * degrees.cp, degrees.tp, shape),
          place_group(degrees.dp_replicate, degrees.gpus() / degrees.dp_replicate, shape),
          place_group(expert_shards, experts, shape),
          place_group(degrees.expert_replicate(), expert_shards * experts, shape)};
}

BytesPerSecond aggregate_bandwidth(const cluster::Link& per_member, int members) {
  return BytesPerSecond(per_member.bandwidth.value() * members);
}

}  // namespace tangram::cost
