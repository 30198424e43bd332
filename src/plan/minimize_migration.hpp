// A placement that moves little work. Goes in: placed parts, and an older plan. Comes out: the same parts on the same
// shapes, with what islands of a class and members of an island hold exchanged so that many GPUs keep their work. As
// these are interchangeable, nothing that was priced changes.
#pragma once

#include <vector>

#include "tangram/plan/assemble.hpp"

namespace tangram::plan {

/// `placed` as place() returns it. Exchanges greedily: what fits best first.
void minimize_migration(std::vector<std::vector<std::vector<PlacedPart>>>& placed,
                        const compose::Composition& composition, const cluster::Fleet& fleet,
                        const cluster::IslandLevel& level, const LaunchPlan& near);

}  // namespace tangram::plan
