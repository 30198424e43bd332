// How far the cost model is from single kernels, with the catalogue's figures and with figures of their own:
// `tangram calibrate --from kernels`.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace tangram::app {

/// Each table of each file.
[[nodiscard]] ExitCode show_kernel_times(const std::vector<std::string>& files, const Context& context);

}  // namespace tangram::app
