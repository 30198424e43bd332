// Rows for degrees and samples that nobody measured, so that a plan that measured rows speak against cannot turn to
// degrees where the model alone would still praise it. Goes in: profiles, and the model that is planned. Comes out: the
// same profiles and, behind them, one for each with scaled rows of the model's block types and ends, which answers what
// the measured ones do not.
//
//   t(point) = model(point) x measured(r) / model(r),   forward and backward each,
//
// where r is the measured row of the unit, at any sequence length, nearest to the point: first by tp, then by cp, ep
// and etp, then by samples, then by sequence length, each by its logarithm; of several as near, the median of the
// ratios. Rows that could not be true of their GPU (find_anomaly) are left out.
#pragma once

#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/profile.hpp"

namespace tangram::cost {

inline constexpr std::int64_t kMostScaledSamples = 128;  ///< of one replica; from 1 in powers of two

/// Of these degrees the fewest replicas with whose ranks the experts come out even.
[[nodiscard]] Degrees with_least_replicas(Degrees degrees);

/// What a unit can run at in hosts of up to 8 GPUs: tp, cp and ep of 1, 2, 4 and 8, with and without sequence
/// parallelism.
[[nodiscard]] std::vector<Degrees> usual_degrees(const model::Model& model, const ProfileUnit& unit);

/// GPUs of one host, joined by what the type has.
[[nodiscard]] cluster::DeviceShape one_host(const cluster::GpuType& device, int gpus);

/// `samples` of one replica. Requires degrees that the unit supports, as many GPUs in the shape, and a device with a
/// peak rate for the job's precision.
[[nodiscard]] BlockTime modelled_time(const model::Model& model, const ProfileUnit& unit, std::int64_t samples,
                                      const Degrees& degrees, const cluster::DeviceShape& shape);

/// O(profiles x block types x points x rows).
[[nodiscard]] ProfileSet with_scaled_rows(const ProfileSet& profiles, const model::Model& model);

/// Without scaled rows, and with ProfileSet::require_measured().
[[nodiscard]] ProfileSet measured_alone(const ProfileSet& profiles);

}  // namespace tangram::cost
