// Links between shapes, as the composer prices them: by class, because members are not named yet, so the slowest link
// between any two different members counts. What crosses islands is priced with them.
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
};

/// Members the shape spans.
[[nodiscard]] int members_of(const cluster::IslandLevel& level, const Placement& placement);

/// Link between two stages on these shapes, per member of either, reduced to the share of a member's network cards that
/// a part of a member may use. In a class of one member both stages live in it and the inner link counts; where both
/// fit into a member, the slower of the two.
[[nodiscard]] cluster::Link link_between(const cluster::IslandLevel& level, const Placement& a, const Placement& b);

/// Slowest link between the shape and any other member of the fleet: a safe price before the other end is known.
[[nodiscard]] cluster::Link slowest_link(const cluster::IslandLevel& level, const Placement& placement);

/// The handover between two stages.
struct Handover {
  cost::BoundaryCost cost;
  int source = 0;  ///< parts the price is of
  int target = 0;
};

/// Of all pairs of parts the dearest: every part may have to send to every other. `bytes`: of the whole microbatch.
[[nodiscard]] Handover dearest_handover(const cluster::IslandLevel& level, std::span<const Placement> from,
                                        std::span<const Placement> to, Bytes bytes);

/// Where those meet that hold the same blocks and reduce their gradients: parts of a stage, times replicas.
struct Meeting {
  int holders = 1;
  cluster::Link link;  ///< slowest between any two of them, per member
  int members = 1;     ///< of the narrowest
};

/// Of the parts of one stage in all replicas of its pipeline.
[[nodiscard]] Meeting meeting_of(const cluster::IslandLevel& level, int replicas, std::span<const Placement> parts);

/// `replicas` of another pipeline join what the stage with these parts meets for. `stages`: placements of those of its
/// stages that hold some of the same blocks.
void join(const cluster::IslandLevel& level, std::span<const Placement> parts, int replicas,
          std::span<const std::vector<Placement>> stages, Meeting& meeting);

/// Gradient synchronisation that leaves an island: at a meeting of the stage's `parts` and others, and between the two
/// ends of a tied embedding, whose other end is unknown and therefore priced at the slowest link. `volume`: of the
/// slice's gradients, unsharded.
[[nodiscard]] Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level,
                                        const Meeting& meeting, std::span<const Placement> parts,
                                        const model::SliceSignature& slice, Bytes volume);

/// The same where pipelines are equal: with `replicas` of this one.
[[nodiscard]] Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level, int replicas,
                                        std::span<const Placement> parts, const model::SliceSignature& slice,
                                        Bytes volume);

}  // namespace tangram::compose
