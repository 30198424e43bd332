// Which GPU every rank of a job runs on. Goes in: what its files ask for, and the fleet. Comes out: named GPUs for
// every replica, or which GPU there is none of.
#pragma once

#include <vector>

#include "tangram/import/job.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::importing {

/// GPUs of one replica; islands are not known yet.
using ReplicaGpus = std::vector<plan::GpuSlot>;

/// [pipeline][stage][replica].
using RankAssignment = std::vector<std::vector<std::vector<ReplicaGpus>>>;

/// In the order of the job's ranks. A replica without requests takes the next GPUs in order; one with requests stays on
/// one host where a host has them.
[[nodiscard]] Expected<RankAssignment> assign_ranks(const Job& job, const cluster::Fleet& fleet);

/// How many GPUs the job can have.
[[nodiscard]] std::size_t available_gpus(const Job& job, const cluster::Fleet& fleet);

}  // namespace tangram::importing
