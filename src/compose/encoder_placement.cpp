#include "tangram/compose/encoder_placement.hpp"

#include <algorithm>
#include <array>

namespace tangram::compose {

namespace {

constexpr std::array kPlacements{EncoderPlacement::kHomogeneous, EncoderPlacement::kDisjoint,
                                 EncoderPlacement::kColocated};

}  // namespace

std::span<const EncoderPlacement> encoder_placements() { return kPlacements; }

std::optional<EncoderPlacement> placement_named(std::string_view name) {
  const auto* const found = std::ranges::find(kPlacements, name, to_string);
  return found == kPlacements.end() ? std::nullopt : std::optional(*found);
}

std::string_view to_string(EncoderPlacement placement) {
  switch (placement) {
    case EncoderPlacement::kAny: break;
    case EncoderPlacement::kHomogeneous: return "homogeneous";
    case EncoderPlacement::kDisjoint: return "disjoint";
    case EncoderPlacement::kColocated: return "colocated";
  }
  return "any";
}

}  // namespace tangram::compose
