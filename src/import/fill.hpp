// Jobs that do not say how many GPUs they run on. Goes in: such a job and the fleet. Comes out: the job with as many
// replicas as there is room for.
#pragma once

#include "tangram/cluster/fleet.hpp"
#include "tangram/import/job.hpp"

namespace tangram::importing {

[[nodiscard]] Expected<Job> filled(const Job& job, const cluster::Fleet& fleet);

}  // namespace tangram::importing
