// Whether a job trains the model that was given for it. Goes in: the job's arguments and the model. Comes out: where
// they differ.
#pragma once

#include "tangram/import/job.hpp"

namespace tangram::importing {

/// Compared with what the exporter writes for the model; arguments it does not write say nothing about the plan.
[[nodiscard]] Diagnostics differences(const Job& job, const model::Model& model);

}  // namespace tangram::importing
