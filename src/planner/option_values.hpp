// What a planner may do with execution options. Goes in: an option, a model. Comes out: other values, what they bear on
// and what software they need.
#pragma once

#include <string_view>
#include <vector>

#include "tangram/model/model.hpp"

namespace tangram::planner {

/// The model's job with each other value of the option; of modules that are recomputed, with one more or less, or all.
[[nodiscard]] std::vector<model::Job> with_other_values(const model::Model& model, model::ExecutionOption option);

[[nodiscard]] bool bears_on(model::ExecutionOption option, const model::Model& model);

/// Whether plans with other values need more or less memory.
[[nodiscard]] bool is_of_memory(model::ExecutionOption option);

/// What Megatron-LM needs beside itself for the job's value of the option; empty: nothing.
[[nodiscard]] std::string_view needed_for(model::ExecutionOption option, const model::Job& job);

}  // namespace tangram::planner
