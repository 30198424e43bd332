// Selections of modules, tried one by one.
#pragma once

#include <cstdint>
#include <optional>

#include "tangram/multimodal/join.hpp"
#include "tangram/multimodal/share.hpp"

namespace tangram::tests {

/// The least time of all selections that the inventory allows; none: no selection has a closed form.
[[nodiscard]] std::optional<std::int64_t> fastest_of_all(const multimodal::JoinProblem& problem);
[[nodiscard]] std::optional<std::int64_t> fastest_of_all(const multimodal::ShareProblem& problem);

}  // namespace tangram::tests
