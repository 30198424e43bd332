// What was measured of ways to share GPUs, beside what is predicted: `tangram disaggregate accuracy`.
#pragma once

#include <string>

#include "command.hpp"

namespace tangram::app {

/// Of a file tangram.serving_measurements/1. Clusters, models and graphs that it names are beside it, or shipped.
[[nodiscard]] ExitCode serving_accuracy(const std::string& file, const Context& context);

}  // namespace tangram::app
