// Execution options of a Megatron-LM job. Goes in: its arguments, and the model that they train. Comes out: the model
// with what they say of how it runs; what they leave out is as the model file has it.
#pragma once

#include "arguments.hpp"
#include "tangram/import/import.hpp"
#include "tangram/import/job.hpp"

namespace tangram::importing {

/// Unknown values are reported; what nothing here predicts becomes a note of the job.
void read_execution(ArgumentMap& arguments, Job& job);

/// The model as the job runs it.
[[nodiscard]] model::Model as_executed(const ReadJob& job, const model::Model& model);

}  // namespace tangram::importing
