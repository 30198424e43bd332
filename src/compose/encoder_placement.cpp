#include "tangram/compose/encoder_placement.hpp"

#include <algorithm>
#include <array>

namespace tangram::compose {

std::optional<EncoderPlacement> placement_named(std::string_view name) {
  static constexpr std::array kPlacements{EncoderPlacement::kHomogeneous, EncoderPlacement::kDisjoint};
  const auto* const found = std::ranges::find(kPlacements, name, to_string);
  return found == kPlacements.end() ? std::nullopt : std::optional(*found);
}

std::string_view to_string(EncoderPlacement placement) {
  switch (placement) {
    case EncoderPlacement::kAny: break;
    case EncoderPlacement::kHomogeneous: return "homogeneous";
    case EncoderPlacement::kDisjoint: return "disjoint";
  }
  return "any";
}

}  // namespace tangram::compose
