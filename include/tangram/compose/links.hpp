// Links between shapes, as the composer prices them: by class, because members are not named yet, so the slowest link
// between any two different members counts, unless both shapes are known to be in the same one. What crosses islands is
// priced with them.
#pragma once

#include <span>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::compose {

/// A shape of a class.
struct Placement {
  int island_class = 0;
  int gpus = 0;
  /// Of the class: where the shape is, if that is known. Two with equal numbers are in the same member.
  int member = kAnyMember;

  static constexpr int kAnyMember = -1;
};

/// Members the shape spans.
[[nodiscard]] int members_of(const cluster::IslandLevel& level, const Placement& placement);

/// Link between two stages on these shapes, per member of either, reduced to the share of a member's network cards that
/// a part of a member may use. In the same member, as always in a class of one, the inner link counts; where both
/// fit into a member and it is not known whether they are in the same one, the slower of the two.
[[nodiscard]] cluster::Link link_between(const cluster::IslandLevel& level, const Placement& a, const Placement& b);

/// Where the stages of one pipeline are: on some classes, or all in the same member of one. The ends of a tied
/// embedding exchange gradients over the slowest link that may lie between them there, as one of them is priced before
/// the other is known.
struct Reach {
  std::vector<int> classes;  ///< ascending
  bool in_one_member = false;
  std::vector<int> with_replicas = {};  ///< classes, ascending: one member of each holds all replicas' stages on it
  auto operator<=>(const Reach&) const = default;
};

/// Reaches that are worth a search of their own: all classes first; of few classes all sets, of more those between
/// which links are faster; single members of a class of several. Any pipeline that is within one of them is also within
/// the first.
[[nodiscard]] std::vector<Reach> reaches_of(const cluster::IslandLevel& level);

/// The one of these, of all that hold a pipeline with these shapes, in which the ends meet over the fastest link.
/// `in_one_member`: whether the shapes lie so.
[[nodiscard]] Reach narrowest_reach(const cluster::IslandLevel& level, std::span<const Placement> pipeline,
                                    bool in_one_member);

/// Slowest link between the shape and any other member within reach.
[[nodiscard]] cluster::Link slowest_link(const cluster::IslandLevel& level, const Placement& placement,
                                         const Reach& reach);

/// The handover between two stages.
struct Handover {
  cost::BoundaryCost cost;
  int source = 0;  ///< parts the price is of
  int target = 0;
  cluster::Link link;  ///< between these
};

/// Of all pairs of parts the dearest: every part may have to send to every other. `bytes`: of the whole microbatch.
[[nodiscard]] Handover dearest_handover(const cluster::IslandLevel& level, std::span<const Placement> from,
                                        std::span<const Placement> to, Bytes bytes);

/// Where those meet that hold the same blocks and reduce their gradients: parts of a stage, times replicas.
struct SyncGroup {
  int holders = 1;
  cluster::Link link;  ///< slowest between any two of them, per member
  int members = 1;     ///< of the narrowest
};

/// Of the parts of one stage in all replicas of its pipeline. `in_one_member`: classes, ascending, of which one member
/// holds them all.
[[nodiscard]] SyncGroup sync_group_of(const cluster::IslandLevel& level, int replicas, std::span<const Placement> parts,
                                      std::span<const int> in_one_member = {});

/// `replicas` of another pipeline join what the stage with these parts meets for. `stages`: placements of those of its
/// stages that hold some of the same blocks.
void join(const cluster::IslandLevel& level, std::span<const Placement> parts, int replicas,
          std::span<const std::vector<Placement>> stages, SyncGroup& sync_group);

/// Gradient synchronisation that leaves an island: within the group of the stage's `parts` and others, and between the
/// two ends of a tied embedding, of which the other is somewhere within `reach`. `volume`: of the slice's gradients,
/// unsharded.
[[nodiscard]] Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level,
                                        const SyncGroup& sync_group, const Reach& reach,
                                        std::span<const Placement> parts, const model::SliceSignature& slice,
                                        Bytes volume);

/// The same where pipelines are equal: with `replicas` of this one, which may be in the same member.
[[nodiscard]] Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level, int replicas,
                                        const Reach& reach, std::span<const Placement> parts,
                                        const model::SliceSignature& slice, Bytes volume);

}  // namespace tangram::compose
