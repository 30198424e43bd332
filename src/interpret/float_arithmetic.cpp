#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "arithmetic.hpp"

namespace tangram::interpret {
namespace {

using ptx::Type;

// A double has more than twice the bits of a float, and two more: sums, products, quotients and roots of floats that
// are rounded twice are those rounded once (Figueroa, "When is double rounding innocuous?", 1995).
double exact_or_double(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    default: return a / b;
  }
}

/// A NaN beside a number does not count.
double least(double a, double b) {
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return std::fmin(a, b);
}
double greatest(double a, double b) {
  if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  return std::fmax(a, b);
}

double fused(Type type, double a, double b, double c) {
  if (type == Type::kF32) {
    return static_cast<double>(std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
  }
  return std::fma(a, b, c);
}

double value_of(Op op, Type type, std::span<const double> x) {
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv: return exact_or_double(op, x[0], x[1]);
    case Op::kFma:
    case Op::kMad: return fused(type, x[0], x[1], x[2]);
    case Op::kMin: return least(x[0], x[1]);
    case Op::kMax: return greatest(x[0], x[1]);
    case Op::kAbs: return std::fabs(x[0]);
    case Op::kNeg: return -x[0];
    case Op::kCopySign: return std::copysign(x[1], x[0]);
    case Op::kSqrt: return std::sqrt(x[0]);
    case Op::kRsqrt: return 1 / std::sqrt(x[0]);
    case Op::kRcp: return 1 / x[0];
    case Op::kEx2: return std::exp2(x[0]);
    case Op::kLg2: return std::log2(x[0]);
    case Op::kSin: return std::sin(x[0]);
    case Op::kCos: return std::cos(x[0]);
    case Op::kTanh: return std::tanh(x[0]);
    default: return 0;
  }
}

bool has_class(std::string_view name, double value, Type type) {
  const bool tiny = type == Type::kF32 ? std::fabs(value) < static_cast<double>(std::numeric_limits<float>::min())
                                       : std::fabs(value) < std::numeric_limits<double>::min();
  if (name == "finite") return std::isfinite(value);
  if (name == "infinite") return std::isinf(value);
  if (name == "number") return !std::isnan(value);
  if (name == "notanumber") return std::isnan(value);
  if (name == "subnormal") return tiny && value != 0;
  return std::isfinite(value) && !tiny;
}

double rounded(std::string_view how, double value) {
  if (how == "rzi") return std::trunc(value);
  if (how == "rmi") return std::floor(value);
  if (how == "rpi") return std::ceil(value);
  return std::nearbyint(value);
}

/// Numbers outside of the range become its ends, NaN becomes 0 (PTX ISA, "cvt").
Bits to_integer(double value, Type type) {
  const int count = bit_count(type);
  const bool is_signed = ptx::is_signed(type);
  if (std::isnan(value)) return 0;
  const double limit = std::ldexp(1.0, is_signed ? count - 1 : count);
  if (value >= limit) return truncated(~Bits{0}, is_signed ? count - 1 : count);
  if (value < (is_signed ? -limit : 0.0)) return is_signed ? Bits{1} << (count - 1) : 0;
  return truncated(is_signed ? static_cast<Bits>(static_cast<std::int64_t>(value)) : static_cast<Bits>(value), count);
}

Bits from_integer(Bits bits, Type from, Type to) {
  const int count = bit_count(from);
  if (ptx::is_signed(from)) {
    const std::int64_t value = extended(bits, count);
    return to == Type::kF32 ? bits_of(static_cast<float>(value)) : from_double(static_cast<double>(value), to);
  }
  const Bits value = truncated(bits, count);
  return to == Type::kF32 ? bits_of(static_cast<float>(value)) : from_double(static_cast<double>(value), to);
}

Bits saturated_integer(Bits bits, Type from, Type to) {
  __extension__ using Wide = __int128;
  const int count = bit_count(to);
  const Wide value = ptx::is_signed(from) ? Wide{extended(bits, bit_count(from))}
                                          : static_cast<Wide>(truncated(bits, bit_count(from)));
  const Wide most = (Wide{1} << (ptx::is_signed(to) ? count - 1 : count)) - 1;
  const Wide least_value = ptx::is_signed(to) ? -most - 1 : Wide{0};
  return truncated(static_cast<Bits>(std::clamp(value, least_value, most)), count);
}

}  // namespace

Bits flushed(const Step& step, Bits bits, Type type) {
  if (!step.flush || type != Type::kF32) return bits;
  const float value = as_float(bits);
  return std::fpclassify(value) == FP_SUBNORMAL ? bits_of(std::copysign(0.0F, value)) : bits;
}

Bits compute_float(const Step& step, Type type, std::span<const Bits> operands) {
  std::array<double, 4> values{};
  for (std::size_t i = 0; i < std::min(operands.size(), values.size()); ++i) {
    values[i] = to_double(flushed(step, operands[i], type), type);
  }
  if (step.op == Op::kTestp) return has_class(step.choice, values[0], type) ? 1 : 0;
  double result = value_of(step.op, type, values);
  if (step.saturate) result = std::isnan(result) ? 0 : std::clamp(result, 0.0, 1.0);
  return flushed(step, from_double(result, type), type);
}

Bits convert(const Step& step, Bits bits) {
  const Type from = step.type;
  const Type to = step.result;
  if (!ptx::is_float(from) && !ptx::is_float(to)) {
    if (step.saturate) return saturated_integer(bits, from, to);
    const Bits value =
        ptx::is_signed(from) ? static_cast<Bits>(extended(bits, bit_count(from))) : truncated(bits, bit_count(from));
    // Where the register is wider than the type, it holds the value extended.
    return ptx::is_signed(to) ? static_cast<Bits>(extended(value, bit_count(to))) : truncated(value, bit_count(to));
  }
  if (!ptx::is_float(from)) return from_integer(bits, from, to);
  const double value = to_double(flushed(step, bits, from), from);
  if (!ptx::is_float(to)) return to_integer(rounded(step.choice, value), to);
  double result = step.choice.empty() ? value : rounded(step.choice, value);
  if (step.saturate) result = std::isnan(result) ? 0 : std::clamp(result, 0.0, 1.0);
  return flushed(step, from_double(result, to), to);
}

}  // namespace tangram::interpret
