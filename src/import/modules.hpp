// Modules with ranks of their own as the stages of one pipeline. Goes in: a job of modules, and the model that they are
// of. Comes out: the job with a pipeline of the encoders and the stages of the language model; or which module the
// model has not.
#pragma once

#include <string_view>

#include "tangram/import/job.hpp"

namespace tangram::importing {

inline constexpr std::string_view kLanguageModule = "language";

[[nodiscard]] Diagnostics stages_of_modules(Job& job, const model::Model& model);

}  // namespace tangram::importing
