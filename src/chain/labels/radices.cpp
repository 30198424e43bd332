#include "tangram/chain/radices.hpp"

namespace tangram::chain {

std::optional<std::vector<Radix>> radices_of(std::span<const int> units) {
  std::vector<Radix> radices;
  radices.reserve(units.size());
  std::uint64_t scale = 1;
  bool high = false;
  for (const int most : units) {
    const auto radix = static_cast<std::uint64_t>(most) + 1;
    if (scale > UINT64_MAX / radix / 2) {
      if (high) return std::nullopt;
      high = true;
      scale = 1;
    }
    radices.push_back({scale, radix, high});
    scale *= radix;
  }
  return radices;
}

}  // namespace tangram::chain
