// Words of the plan file for the plan's enumerations.
#pragma once

#include <string_view>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

inline constexpr std::string_view kSchema = "tangram.launch_plan/1";
/// Coordinates of a stage's ranks, fastest first; expert groups (etp, ep, edp) number the same ranks anew.
inline constexpr std::string_view kRankOrder = "tp-cp-ep-dp-pp";

[[nodiscard]] constexpr std::string_view to_string(BoundaryMode mode) {
  switch (mode) {
    case BoundaryMode::kEqual: return "equal";
    case BoundaryMode::kFanIn: return "fan_in";
    case BoundaryMode::kFanOut: return "fan_out";
    case BoundaryMode::kOverlap: return "overlap";
  }
  return "overlap";
}

/// In the place of a recompute mode: it differs from block to block.
inline constexpr std::string_view kMixed = "mixed";

[[nodiscard]] constexpr std::string_view to_string(model::RecomputeMode mode) {
  switch (mode) {
    case model::RecomputeMode::kNone: return "none";
    case model::RecomputeMode::kSelective: return "selective";
    case model::RecomputeMode::kFull: return "full";
  }
  return "none";
}

/// How the recomputed layers are chosen: the first n of the stage.
[[nodiscard]] constexpr std::string_view recompute_method(model::RecomputeMode mode) {
  return mode == model::RecomputeMode::kFull ? "block" : "none";
}

}  // namespace tangram::plan
