// Whether the state of a job can fit at all. Goes in: the model, an island level. Comes out: bytes needed and bytes
// there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tangram/base/units.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/model/model.hpp"

namespace tangram::relax {

/// Bytes that plans may use on all GPUs together. `types`: of these alone; empty: of all.
[[nodiscard]] Bytes usable_memory(const cluster::IslandLevel& level, std::span<const std::string> types = {});

/// Bytes of so many parameters of full width, and of gradients and optimizer state of those that are trained, each
/// there once.
[[nodiscard]] double state_bytes(const model::Job& job, double held, std::int64_t trained);

/// Bytes that parameters, gradients and optimizer state need at least, sharded without any overhead.
[[nodiscard]] Bytes least_state(const model::Model& model);

}  // namespace tangram::relax
