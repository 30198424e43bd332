// Numbers as registers hold them: up to 64 bits. Goes in: bits and their type. Comes out: values of C++ and back.
#pragma once

#include <bit>
#include <cstdint>

#include "tangram/ptx/program.hpp"

namespace tangram::interpret {

using Bits = std::uint64_t;

[[nodiscard]] inline int bit_count(ptx::Type type) { return type == ptx::Type::kPred ? 1 : 8 * ptx::width_of(type); }

[[nodiscard]] inline Bits truncated(Bits bits, int count) {
  return count >= 64 ? bits : bits & ((Bits{1} << count) - 1);
}

[[nodiscard]] inline std::int64_t extended(Bits bits, int count) {
  if (count >= 64) return static_cast<std::int64_t>(bits);
  const Bits sign = Bits{1} << (count - 1);
  return static_cast<std::int64_t>((truncated(bits, count) ^ sign) - sign);
}

[[nodiscard]] inline float as_float(Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
[[nodiscard]] inline double as_double(Bits bits) { return std::bit_cast<double>(bits); }
[[nodiscard]] inline Bits bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
[[nodiscard]] inline Bits bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

/// Any floating-point type that is one number, exactly.
[[nodiscard]] double to_double(Bits bits, ptx::Type type);
/// To nearest even, rounded once.
[[nodiscard]] Bits from_double(double value, ptx::Type type);

}  // namespace tangram::interpret
