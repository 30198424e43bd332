// Words for what profiles and measurements hold, which several commands use.
#pragma once

#include <string>

#include "tangram/cost/strategy.hpp"

namespace tangram::app {

/// "tp2+sp cp2"; dp is not said.
[[nodiscard]] std::string degrees_text(const cost::Degrees& degrees);

/// "exchanges of tp are in the times" and its contrary.
[[nodiscard]] std::string exchanges_text(bool includes_tp_communication);

}  // namespace tangram::app
