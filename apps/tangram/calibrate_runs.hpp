// How far predictions are from one's own runs, and how far they are once other runs correct them:
// `tangram calibrate --from runs`.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace tangram::app {

/// Each run, corrected by all others of its family; and each family, corrected by part of it: these alone with
/// `summary`.
[[nodiscard]] ExitCode validate_runs(const std::vector<std::string>& files, bool summary, const Context& context);

}  // namespace tangram::app
