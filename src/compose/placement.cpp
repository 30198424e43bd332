#include "tangram/compose/placement.hpp"

#include <algorithm>
#include <array>

namespace tangram::compose {

std::optional<Placement> placement_named(std::string_view name) {
  static constexpr std::array kPlacements{Placement::kHomogeneous, Placement::kDisjoint};
  const auto* const found = std::ranges::find(kPlacements, name, to_string);
  return found == kPlacements.end() ? std::nullopt : std::optional(*found);
}

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::kAny: break;
    case Placement::kHomogeneous: return "homogeneous";
    case Placement::kDisjoint: return "disjoint";
  }
  return "any";
}

}  // namespace tangram::compose
