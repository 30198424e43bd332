// What GPUs cost. Goes in: a class of islands. Comes out: money in whole units that sums and limits can be exact in.
#pragma once

#include <cstdint>

#include "tangram/base/units.hpp"
#include "tangram/cluster/islands.hpp"

namespace tangram::cluster {

using MicroDollarsPerHour = Quantity<struct MicroDollarsPerHourTag, std::int64_t>;

/// Of one GPU of the class; zero where it is not known.
[[nodiscard]] MicroDollarsPerHour price_of(const IslandClass& island_class);

}  // namespace tangram::cluster
