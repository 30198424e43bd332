// The list that AMP prints. Goes in: its text. Comes out: drafts in its order.
#pragma once

#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

[[nodiscard]] bool is_amp_list(const std::string& text);
[[nodiscard]] Expected<Proposals> read_amp(const std::string& text, const std::string& file, const PlannerInput& input);

}  // namespace tangram::baseline
