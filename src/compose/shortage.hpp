// Why there is no plan. Goes in: the model, the level, what did not fit. Comes out: the shortage, and what of the fleet
// to change; which changes of the job help has to be tried (remedies.hpp).
#pragma once

#include "tangram/base/deadline.hpp"
#include "tangram/base/diagnostic.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/model/model.hpp"

namespace tangram::compose {

struct Attempts {
  bool some_slice_fits = false;  ///< at least one block fits somewhere
  Bytes smallest_shortage;       ///< of one block on one shape, per GPU; 0: unknown
  bool no_batch = false;         ///< no microbatch size divides the batch
};

/// One Diagnostic of kind kInfeasible; never empty.
[[nodiscard]] Diagnostics explain_shortage(const model::Model& model, const cluster::IslandLevel& level,
                                           const Attempts& attempts);

/// One Diagnostic of kind kIncomplete: the deadline passed before any plan was found.
[[nodiscard]] Diagnostics out_of_time(const Deadline& deadline);

/// Bytes that plans may use on all GPUs together.
[[nodiscard]] Bytes usable_memory(const cluster::IslandLevel& level);

/// Bytes that parameters, gradients and optimizer state need at least, sharded without any overhead.
[[nodiscard]] Bytes least_state(const model::Model& model);

}  // namespace tangram::compose
