#include "numbers.hpp"

#include <algorithm>
#include <cmath>

namespace tangram::interpret {
namespace {

struct Layout {
  int exponent_bits;
  int fraction_bits;
};
constexpr Layout kHalf{5, 10};  // IEEE 754 binary16
constexpr Layout kBfloat{8, 7};

double widen(Bits bits, Layout layout) {
  const auto fraction = static_cast<double>(truncated(bits, layout.fraction_bits));
  const auto exponent = static_cast<int>(truncated(bits >> layout.fraction_bits, layout.exponent_bits));
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  const bool negative = (bits >> (layout.exponent_bits + layout.fraction_bits) & 1) != 0;
  double value = 0;
  if (exponent == (1 << layout.exponent_bits) - 1) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - bias - layout.fraction_bits);
  } else {
    value = std::ldexp(fraction + std::ldexp(1.0, layout.fraction_bits), exponent - bias - layout.fraction_bits);
  }
  return negative ? -value : value;
}

Bits narrow(double value, Layout layout) {
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  const int sign_at = layout.exponent_bits + layout.fraction_bits;
  const Bits sign = std::signbit(value) ? Bits{1} << sign_at : 0;
  const Bits infinity = ((Bits{1} << layout.exponent_bits) - 1) << layout.fraction_bits;
  if (std::isnan(value)) return (Bits{1} << sign_at) - 1;  // the NaN that PTX computes
  const double size = std::fabs(value);
  if (std::isinf(size)) return sign | infinity;
  int exponent = 0;
  (void)std::frexp(size, &exponent);
  const int lowest = 1 - bias;
  const int unit = std::max(exponent - 1, lowest) - layout.fraction_bits;  // of the last place
  const double places = std::nearbyint(std::ldexp(size, -unit));
  const double rounded = std::ldexp(places, unit);
  if (rounded >= std::ldexp(1.0, bias + 1)) return sign | infinity;
  if (rounded < std::ldexp(1.0, lowest))
    return sign | static_cast<Bits>(std::ldexp(rounded, layout.fraction_bits - lowest));
  (void)std::frexp(rounded, &exponent);
  const auto fraction = static_cast<Bits>(std::ldexp(rounded, layout.fraction_bits + 1 - exponent));
  return sign | static_cast<Bits>(exponent - 1 + bias) << layout.fraction_bits |
         truncated(fraction, layout.fraction_bits);
}

}  // namespace

double to_double(Bits bits, ptx::Type type) {
  switch (type) {
    case ptx::Type::kF16: return widen(bits, kHalf);
    case ptx::Type::kBf16: return widen(bits, kBfloat);
    case ptx::Type::kF64: return as_double(bits);
    default: return static_cast<double>(as_float(bits));
  }
}

Bits from_double(double value, ptx::Type type) {
  switch (type) {
    case ptx::Type::kF16: return narrow(value, kHalf);
    case ptx::Type::kBf16: return narrow(value, kBfloat);
    case ptx::Type::kF64: return bits_of(value);
    default: return bits_of(static_cast<float>(value));
  }
}

}  // namespace tangram::interpret
