// Layers of each pipeline stage in Megatron-LM's words. Goes in: arguments. Comes out: layers per stage, first to last.
#pragma once

#include <cstdint>
#include <vector>

#include "arguments.hpp"

namespace tangram::importing {

/// --pipeline-model-parallel-layout where it is given, else the even split with what its flags change. Mistakes go to
/// the arguments' sink; the result is then of no use.
[[nodiscard]] std::vector<std::int64_t> layers_per_stage(ArgumentMap& arguments, std::int64_t stages);

}  // namespace tangram::importing
