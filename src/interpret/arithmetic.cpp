#include "arithmetic.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace tangram::interpret {
namespace {

using ptx::Type;

__extension__ using WideSigned = __int128;
__extension__ using WideUnsigned = unsigned __int128;

/// A whole number of up to 64 bits of a type.
struct Integer {
  Bits bits;
  int count;
  bool is_signed;

  [[nodiscard]] WideSigned value() const {
    return is_signed ? WideSigned{extended(bits, count)} : static_cast<WideSigned>(truncated(bits, count));
  }
};

Bits product(const Step& step, const Integer& a, const Integer& b) {
  if (step.source->opcode.ends_with("24")) {
    const auto low = [&](const Integer& x) { return Integer{x.bits, 24, x.is_signed}.value(); };
    const auto whole = static_cast<WideUnsigned>(low(a) * low(b));
    return truncated(static_cast<Bits>(step.high ? whole >> 16 : whole), 32);
  }
  const auto whole = static_cast<WideUnsigned>(a.value() * b.value());
  if (step.wide) return truncated(static_cast<Bits>(whole), 2 * a.count);
  if (step.high) return truncated(static_cast<Bits>(whole >> a.count), a.count);
  return truncated(static_cast<Bits>(whole), a.count);
}

Bits saturated(WideSigned value, int count) {
  const WideSigned most = (WideSigned{1} << (count - 1)) - 1;
  return truncated(static_cast<Bits>(std::clamp<WideSigned>(value, -most - 1, most)), count);
}

/// Division by zero gives all ones, as the hardware does.
Bits quotient(const Integer& a, const Integer& b) {
  if (b.value() == 0) return truncated(~Bits{0}, a.count);
  return truncated(static_cast<Bits>(a.value() / b.value()), a.count);
}

Bits rest(const Integer& a, const Integer& b) {
  return truncated(static_cast<Bits>(b.value() == 0 ? a.value() : a.value() % b.value()), a.count);
}

Bits shifted_left(Bits value, Bits by, int count) {
  return by >= static_cast<Bits>(count) ? 0 : truncated(value << by, count);
}

Bits shifted_right(const Integer& a, Bits by) {
  const auto most = static_cast<Bits>(a.count);
  if (a.is_signed) return truncated(static_cast<Bits>(a.value() >> std::min(by, most - 1)), a.count);
  return by >= most ? 0 : truncated(a.bits, a.count) >> by;
}

Bits extracted(const Integer& a, Bits position, Bits length) {
  position &= 0xff;
  length &= 0xff;
  if (length == 0) return 0;
  const auto count = static_cast<Bits>(a.count);
  const Bits sign_at = std::min(position + length - 1, count - 1);
  const bool negative = a.is_signed && (a.bits >> sign_at & 1) != 0;
  const Bits field = position >= count ? 0 : truncated(a.bits, a.count) >> position;
  const Bits found = length >= 64 ? field : truncated(field, static_cast<int>(length));
  const Bits taken = position >= count ? 0 : std::min(length, count - position);
  if (!negative) return found;
  return truncated(taken >= 64 ? found : found | ~Bits{0} << taken, a.count);
}

Bits inserted(Bits field, Bits into, Bits position, Bits length, int count) {
  position &= 0xff;
  length &= 0xff;
  if (length == 0 || position >= static_cast<Bits>(count)) return truncated(into, count);
  const Bits ones = length >= 64 ? ~Bits{0} : (Bits{1} << length) - 1;
  return truncated((into & ~(ones << position)) | (field & ones) << position, count);
}

Bits reversed(Bits value, int count) {
  Bits result = 0;
  for (int i = 0; i < count; ++i) result |= (value >> i & 1) << (count - 1 - i);
  return result;
}

/// prmt without a mode: each nibble of the selector takes a byte of the eight, or its sign alone.
Bits permuted(Bits low, Bits high, Bits selector) {
  const Bits bytes = truncated(low, 32) | high << 32;
  Bits result = 0;
  for (int i = 0; i < 4; ++i) {
    const Bits nibble = selector >> (4 * i) & 0xf;
    const Bits byte = bytes >> (8 * (nibble & 7)) & 0xff;
    const Bits taken = (nibble & 8) == 0 ? byte : (byte & 0x80) != 0 ? Bits{0xff} : Bits{0};
    result |= taken << (8 * i);
  }
  return result;
}

Bits by_table(Bits a, Bits b, Bits c, Bits table) {
  Bits result = 0;
  for (int i = 0; i < 32; ++i) {
    const Bits row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
    result |= (table >> row & 1) << i;
  }
  return result;
}

Bits funnel(const Step& step, Bits low, Bits high, Bits by) {
  const Bits both = truncated(low, 32) | high << 32;
  const Bits count = step.second == "clamp" ? std::min<Bits>(by, 32) : by & 31;
  if (step.choice == "l") return count == 0 ? truncated(high, 32) : truncated(both >> (32 - count), 32);
  return truncated(both >> count, 32);
}

/// The place of the highest bit that differs from the sign, or all ones.
Bits highest_bit(const Integer& a) {
  const Bits value = a.is_signed && a.value() < 0 ? truncated(~a.bits, a.count) : truncated(a.bits, a.count);
  return value == 0 ? truncated(~Bits{0}, 32) : static_cast<Bits>(std::bit_width(value) - 1);
}

Bits compute_integer(const Step& step, std::span<const Bits> operands) {
  const int count = bit_count(step.type);
  const bool is_signed = ptx::is_signed(step.type);
  const auto of = [&](std::size_t i) { return Integer{operands[i], count, is_signed}; };
  const auto whole = [&](WideSigned value) { return truncated(static_cast<Bits>(value), count); };
  switch (step.op) {
    case Op::kAdd:
      return step.saturate ? saturated(of(0).value() + of(1).value(), count) : whole(of(0).value() + of(1).value());
    case Op::kSub:
      return step.saturate ? saturated(of(0).value() - of(1).value(), count) : whole(of(0).value() - of(1).value());
    case Op::kMul: return product(step, of(0), of(1));
    case Op::kMad: return truncated(product(step, of(0), of(1)) + operands[2], step.wide ? 2 * count : count);
    case Op::kDiv: return quotient(of(0), of(1));
    case Op::kRem: return rest(of(0), of(1));
    case Op::kAbs: return whole(of(0).value() < 0 ? -of(0).value() : of(0).value());
    case Op::kNeg: return whole(-of(0).value());
    case Op::kMin: return whole(std::min(of(0).value(), of(1).value()));
    case Op::kMax: return whole(std::max(of(0).value(), of(1).value()));
    case Op::kSad: {
      const WideSigned gap = of(0).value() - of(1).value();
      return whole(of(2).value() + (gap < 0 ? -gap : gap));
    }
    case Op::kAnd: return operands[0] & operands[1];
    case Op::kOr: return operands[0] | operands[1];
    case Op::kXor: return operands[0] ^ operands[1];
    case Op::kNot: return truncated(~operands[0], count);
    case Op::kCnot: return truncated(operands[0], count) == 0 ? 1 : 0;
    case Op::kShl: return shifted_left(operands[0], truncated(operands[1], 32), count);
    case Op::kShr: return shifted_right(of(0), truncated(operands[1], 32));
    case Op::kBfe: return extracted(of(0), operands[1], operands[2]);
    case Op::kBfi: return inserted(operands[0], operands[1], operands[2], operands[3], count);
    case Op::kBfind: return highest_bit(of(0));
    case Op::kBrev: return reversed(operands[0], count);
    case Op::kClz: return static_cast<Bits>(count) - static_cast<Bits>(std::bit_width(truncated(operands[0], count)));
    case Op::kPopc: return static_cast<Bits>(std::popcount(truncated(operands[0], count)));
    case Op::kPrmt: return permuted(operands[0], operands[1], operands[2]);
    case Op::kLop3: return by_table(operands[0], operands[1], operands[2], operands[3]);
    case Op::kShf: return funnel(step, operands[0], operands[1], operands[2]);
    default: return 0;
  }
}

}  // namespace

bool compare(const Step& step, Bits a, Bits b) {
  const std::string_view how = step.choice;
  if (ptx::is_float(step.type)) {
    const double x = to_double(flushed(step, a, step.type), step.type);
    const double y = to_double(flushed(step, b, step.type), step.type);
    const bool unordered = x != x || y != y;
    if (how == "num") return !unordered;
    if (how == "nan") return unordered;
    if (unordered) return how.ends_with('u');
    const std::string_view base = how.substr(0, 2);
    if (base == "eq") return x == y;
    if (base == "ne") return x != y;
    if (base == "lt") return x < y;
    if (base == "le") return x <= y;
    return base == "gt" ? x > y : x >= y;
  }
  const bool unsigned_name = how == "lo" || how == "ls" || how == "hi" || how == "hs";
  const int count = bit_count(step.type);
  const bool is_signed = ptx::is_signed(step.type) && !unsigned_name;
  const WideSigned x = Integer{a, count, is_signed}.value();
  const WideSigned y = Integer{b, count, is_signed}.value();
  if (how == "eq") return x == y;
  if (how == "ne") return x != y;
  if (how == "lt" || how == "lo") return x < y;
  if (how == "le" || how == "ls") return x <= y;
  return how == "gt" || how == "hi" ? x > y : x >= y;
}

Bits updated(const Step& step, Bits old, Bits operand, Bits more) {
  const std::string_view how = step.choice;
  const int count = bit_count(step.type);
  if (how == "exch") return operand;
  if (how == "cas") return truncated(old, count) == truncated(operand, count) ? more : old;
  if (how == "and") return old & operand;
  if (how == "or") return old | operand;
  if (how == "xor") return old ^ operand;
  if (how == "inc") return old >= operand ? 0 : old + 1;
  if (how == "dec") return old == 0 || old > operand ? operand : old - 1;
  Step same = step;
  same.op = how == "min" ? Op::kMin : how == "max" ? Op::kMax : Op::kAdd;
  const std::array<Bits, 2> operands = {old, operand};
  return compute(same, operands);
}

Bits compute(const Step& step, std::span<const Bits> operands) {
  switch (step.op) {
    case Op::kCvt:
      if (operands.size() > 1) {  // two floats into one register, the first above
        Step half = step;
        half.result = step.result == Type::kF16x2 ? Type::kF16 : Type::kBf16;
        return convert(half, operands[0]) << 16 | convert(half, operands[1]);
      }
      return convert(step, operands[0]);
    case Op::kSelp: return operands[2] != 0 ? operands[0] : operands[1];
    case Op::kSlct: {  // its second type is that of what decides
      const bool first = step.type == Type::kF32 ? as_float(operands[2]) >= 0 : extended(operands[2], 32) >= 0;
      return first ? operands[0] : operands[1];
    }
    case Op::kSet: {
      const bool holds = compare(step, operands[0], operands[1]);
      if (!holds) return 0;
      return step.result == Type::kF32 ? bits_of(1.0F) : truncated(~Bits{0}, 32);
    }
    default: break;
  }
  if (step.type == Type::kF16x2 || step.type == Type::kBf16x2) {
    const Type half = step.type == Type::kF16x2 ? Type::kF16 : Type::kBf16;
    Bits result = 0;
    for (int part = 0; part < 2; ++part) {
      std::array<Bits, 4> halves{};
      for (std::size_t i = 0; i < std::min(operands.size(), halves.size()); ++i) {
        halves[i] = truncated(operands[i] >> (16 * part), 16);
      }
      result |= compute_float(step, half, halves) << (16 * part);
    }
    return result;
  }
  return ptx::is_float(step.type) ? compute_float(step, step.type, operands) : compute_integer(step, operands);
}

}  // namespace tangram::interpret
