// Allocations of the islands of a level to groups of pipelines. Goes in: the classes. Comes out: how many pieces of
// each class a group has, a fixed list, and the neighbours of an allocation.
#pragma once

#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/search_tuning.hpp"

namespace tangram::ensemble {

/// [group][class]: pieces
using Allocation = std::vector<std::vector<int>>;

/// Pieces of a class: its islands or, where there is but one, the members of that island.
[[nodiscard]] int pieces_of(const cluster::IslandClass& island_class);

/// Whole classes to different groups (all ways with few classes), and every class cut as evenly as it goes; what
/// remains of a class goes to the groups with the least power so far. `power`: of a piece, by class. Equal groups that
/// aligned pipelines on half, a quarter, ... of the level already are, are left out.
[[nodiscard]] std::vector<Allocation> allocations_of(const cluster::IslandLevel& level,
                                                     const std::vector<double>& power, int most_groups,
                                                     const compose::EnsembleTuning& tuning = {});

/// The allocations in which pieces of one class have changed from one group to another: half of them, or one.
[[nodiscard]] std::vector<Allocation> neighbours_of(const Allocation& allocation);

}  // namespace tangram::ensemble
