// What the cost model says of a unit. Goes in: a model, one of its units, how it is parallelized, and where. Comes out:
// times without profiles, as a profile's row would hold them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tangram/calibrate/timings.hpp"
#include "tangram/cluster/islands.hpp"

namespace tangram::calibrate {

/// GPUs of an island of a plan: a part of a member, or whole members. None where they come out otherwise.
[[nodiscard]] std::optional<cluster::DeviceShape> island_shape(const plan::PlanIsland& island, int gpus);

/// `samples` of one replica. Requires degrees that the model supports, as many GPUs in the shape, and a device with a
/// peak rate for the job's precision.
[[nodiscard]] Modelled modelled(const model::Model& model, const TimedUnit& unit, const cost::Degrees& degrees,
                                const cluster::DeviceShape& shape);

/// The shape of so many GPUs, where there is one.
using ShapeOf = std::function<std::optional<cluster::DeviceShape>(int gpus)>;

/// At the degrees and samples of scaled rows (cost/scaled_rows.hpp), as far as there is a shape.
[[nodiscard]] std::vector<Elsewhere> modelled_elsewhere(const model::Model& model, const TimedUnit& unit,
                                                        const ShapeOf& shape_of);

/// Of what a unit of the model takes that is trained in full, what it takes: 1 of units that are. `type`: of a block.
[[nodiscard]] cost::Passes share_of_trained(const model::Model& model, cost::ProfileKind kind, const std::string& type,
                                            const cost::Degrees& degrees, std::int64_t samples,
                                            const cluster::DeviceShape& shape);

/// The unit of a profile; times are of the format that the device's products run in.
[[nodiscard]] cost::ProfileUnit block_of(const model::BlockType& type, const model::Job& job,
                                         const cluster::GpuType& device);
/// kEmbedding or kHead.
[[nodiscard]] cost::ProfileUnit edge_of(cost::ProfileKind kind, const model::Model& model,
                                        const cluster::GpuType& device);

}  // namespace tangram::calibrate
