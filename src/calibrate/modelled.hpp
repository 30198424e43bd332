// What the cost model says of a unit. Goes in: a model, one of its units, how it is parallelized, and where. Comes out:
// times without profiles, as a profile's row would hold them.
#pragma once

#include "tangram/calibrate/timings.hpp"
#include "tangram/cluster/islands.hpp"

namespace tangram::calibrate {

/// Of these degrees the fewest replicas with whose ranks the experts come out even.
[[nodiscard]] cost::Degrees with_least_replicas(cost::Degrees degrees);

/// GPUs of one host, joined by what the type has.
[[nodiscard]] cluster::DeviceShape one_host(const cluster::GpuType& device, int gpus);

/// `samples` of one replica. Requires degrees that the model supports, as many GPUs in the shape, and a device with a
/// peak rate for the job's precision.
[[nodiscard]] Modelled modelled(const model::Model& model, const TimedUnit& unit, const cost::Degrees& degrees,
                                const cluster::DeviceShape& shape);

/// The unit of a profile; times are of the format that the device's products run in.
[[nodiscard]] cost::ProfileUnit block_of(const model::BlockType& type, const model::Job& job,
                                         const cluster::GpuType& device);
/// kEmbedding or kHead.
[[nodiscard]] cost::ProfileUnit edge_of(cost::ProfileKind kind, const model::Model& model,
                                        const cluster::GpuType& device);

}  // namespace tangram::calibrate
