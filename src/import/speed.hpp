// Stages whose files leave it to the speed of the GPUs who takes how many samples. Goes in: a job, its GPUs and the
// cost model. Comes out: samples of every replica.
#pragma once

#include "parts.hpp"

namespace tangram::importing {

/// As Metis shares them: in proportion to one over the time of one sample, whole numbers by largest remainders.
/// Replicas that get nothing are left out, and their GPUs idle.
[[nodiscard]] Diagnostics share_by_speed(Job& job, RankAssignment& assignment, const cluster::IslandLevel& level,
                                         const model::Model& model, const cost::ProfileSet* profiles);

}  // namespace tangram::importing
