// Layers of a job in the terms of a launch plan. Goes in: stages as the files number them. Comes out: blocks, or what a
// launch plan has no words for.
#pragma once

#include "tangram/import/job.hpp"

namespace tangram::importing {

/// Blocks instead of layers that count the embedding and the head. Fails where a stage has no layers, or has layers
/// that the model has not; what is left out between stages is kept.
[[nodiscard]] Diagnostics number_blocks(Job& job, const model::Model& model);

}  // namespace tangram::importing
