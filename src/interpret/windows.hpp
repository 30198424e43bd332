// Where in the range of generic addresses the memories are that a thread sees: far from those of allocations.
#pragma once

#include <cstring>
#include <span>

#include "numbers.hpp"

namespace tangram::interpret {

inline constexpr Bits kWindowBytes = Bits{1} << 48;

/// Where the window of a space begins; 0 of global memory.
[[nodiscard]] constexpr Bits window_start(ptx::Space space) {
  switch (space) {
    case ptx::Space::kShared: return kWindowBytes;
    case ptx::Space::kLocal: return 2 * kWindowBytes;
    case ptx::Space::kParam: return 3 * kWindowBytes;
    default: return 0;
  }
}

/// The space that a generic address leads to.
[[nodiscard]] constexpr ptx::Space window_of(Bits address) {
  for (const ptx::Space space : {ptx::Space::kShared, ptx::Space::kLocal, ptx::Space::kParam}) {
    if (address >= window_start(space) && address < window_start(space) + kWindowBytes) return space;
  }
  return ptx::Space::kGlobal;
}

/// Up to 8 bytes, low ones first.
[[nodiscard]] inline Bits bits_in(std::span<const std::uint8_t> bytes) {
  Bits bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

}  // namespace tangram::interpret
