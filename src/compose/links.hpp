// Links between shapes, as the composer prices them: by class, because members are not named yet, so the slowest link
// between any two different members counts.
#pragma once

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
/// a part of a member may use. In a class of one member both stages live in it and the inner link counts.
[[nodiscard]] cluster::Link link_between(const cluster::IslandLevel& level, const Placement& a, const Placement& b);

/// Slowest link between the shape and any other member of the fleet: a safe price before the other end is known.
[[nodiscard]] cluster::Link slowest_link(const cluster::IslandLevel& level, const Placement& placement);

}  // namespace tangram::compose
