// Why there is no plan. Goes in: the model, the level, what did not fit. Comes out: the shortage, and what of the fleet
// to change; which changes of the job help has to be tried (remedies.hpp).
#pragma once

#include <string>
#include <vector>

#include "tangram/base/diagnostic.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/model/model.hpp"

namespace tangram::compose {

struct Attempts {
  bool some_slice_fits = false;             ///< at least one block fits somewhere
  Bytes smallest_shortage;                  ///< of one block on one shape, per GPU; 0: unknown
  bool no_batch = false;                    ///< no microbatch size divides the batch
  std::vector<std::string> gpu_types = {};  ///< that stages may use; empty: all
};

/// One Diagnostic of kind kInfeasible; never empty.
[[nodiscard]] Diagnostics explain_shortage(const model::Model& model, const cluster::IslandLevel& level,
                                           const Attempts& attempts);

}  // namespace tangram::compose
