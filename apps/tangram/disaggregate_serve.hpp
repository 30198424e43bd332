// What a serving engine starts an arm with: `tangram disaggregate compare --to vllm`.
#pragma once

#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/disaggregate/compare.hpp"
#include "tangram/export/export.hpp"

namespace tangram::app {

/// Of the arm that is recommended, or of the one called `arm`. Errors: no such arm, it does not fit, or engines do not
/// have it.
[[nodiscard]] Expected<exporting::Export> serving_files(const cluster::Fleet& fleet,
                                                        const disaggregate::Problem& problem,
                                                        const disaggregate::Comparison& comparison,
                                                        const std::string& arm);

}  // namespace tangram::app
