// What the files of a job leave open. Goes in: such a job, the fleet and the samples of an iteration. Comes out: the
// job with as many replicas as there is room for, and with its microbatches.
#pragma once

#include "tangram/cluster/fleet.hpp"
#include "tangram/import/job.hpp"

namespace tangram::importing {

[[nodiscard]] Expected<Job> filled(const Job& job, const cluster::Fleet& fleet, std::int64_t batch);

}  // namespace tangram::importing
