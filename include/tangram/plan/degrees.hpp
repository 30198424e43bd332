// Whether a part's degrees suit the layers of its stage. Goes in: the model that is cut into stages, a stage, one of
// its parts. Comes out: nothing, or the first reason why not.
#pragma once

#include <string>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

/// As cost::why_unsupported says it of each chunk. `model`: what pipelined() gives; the stage's chunks lie in it.
[[nodiscard]] std::string why_unsupported(const model::Model& model, const Stage& stage, const Part& part);

}  // namespace tangram::plan
