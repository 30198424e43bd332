// Words of the plan file for the plan's enumerations.
#pragma once

#include <string_view>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

inline constexpr std::string_view kSchema = "tangram.launch_plan/1";
/// Coordinates of a stage's ranks, fastest first; expert groups (etp, ep, edp) number the same ranks anew.
inline constexpr std::string_view kRankOrder = "tp-cp-ep-dp-pp";

/// In the place of a recompute mode: it differs from block to block.
inline constexpr std::string_view kMixed = "mixed";

/// How the recomputed layers are chosen: the first n of the stage.
[[nodiscard]] constexpr std::string_view recompute_method(model::RecomputeMode mode) {
  return mode == model::RecomputeMode::kFull ? "block" : "none";
}

}  // namespace tangram::plan
