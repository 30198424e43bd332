#include "transfer.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::ptx {

Value Transfer::evaluate(const Site& site, OpcodeClass what) const {
  const std::string& opcode = site.instruction.opcode;
  const auto type = site.instruction.type();
  if (what == OpcodeClass::kLoad) return load(site, 0);
  if (what == OpcodeClass::kAtomic || what == OpcodeClass::kMatrix) {
    const int bits = type ? bits_of(*type) : 64;
    return opaque(site, bits < 64 ? Integers::range_of({bits, false}) : Range{}, "depends on data");
  }
  if (type == Type::kPred && site.operand(0).kind == OperandKind::kRegister) {
    const Value any = Value::number(symbols_.opaque(site.number, 4, {0, 1}, {}));
    return {any.choices, logic(site)};
  }
  if (opcode == "cvt") return conversion(site);
  if (type && is_float(*type) && opcode != "mov" && opcode != "selp") return opaque(site);
  if (opcode == "mov" || opcode == "cvta") return move(site);
  if ((opcode == "add" || opcode == "sub") && site.size() == 3 && !site.instruction.has("cc")) {
    return add(site, read(site.operand(1), site.state, site.number), read(site.operand(2), site.state, site.number),
               opcode == "add" ? 1 : -1);
  }
  if ((opcode == "mul" || opcode == "mul24") && site.size() == 3) return product(site);
  if (opcode == "mad" && site.size() == 4 && !site.instruction.has("cc")) {
    return add(site, product(site), read(site.operand(3), site.state, site.number), 1);
  }
  if (site.size() == 3 && (opcode == "shl" || opcode == "shr")) return shift(site);
  if (site.size() == 3 && (opcode == "div" || opcode == "rem")) return division(site);
  if (site.size() == 3 && (opcode == "and" || opcode == "or" || opcode == "xor")) return bits(site);
  if (site.size() == 3 && (opcode == "min" || opcode == "max")) return extreme(site);
  if (site.size() == 2 && (opcode == "neg" || opcode == "not" || opcode == "abs")) return negative(site);
  if (site.size() == 4 && opcode == "selp") return selection(site);
  if (site.size() == 4 && opcode == "bfe") return field(site);
  return opaque(site);
}

Value Transfer::move(const Site& site) const {
  if (site.size() != 2) return opaque(site);
  const Operand& source = site.operand(1);
  if (site.operand(0).kind != OperandKind::kRegister) return opaque(site);
  if (source.kind == OperandKind::kVector) {  // two halves
    const auto low = source.parts.size() == 2 ? read(source.parts[0], site.state, site.number).form() : std::nullopt;
    const auto high = source.parts.size() == 2 ? read(source.parts[1], site.state, site.number).form() : std::nullopt;
    const int half = format_of(site.instruction).bits / 2;
    if (low && high && *high == Form(0)) {
      if (const auto whole = integers(site.state).seen(*low, {half, false})) return Value::number(*whole);
    }
    return opaque(site);
  }
  return read(source, site.state, site.number);
}

Value Transfer::conversion(const Site& site) const {
  const auto from = site.instruction.type();
  const auto to = site.instruction.first_type();
  if (site.size() != 2 || !from || !to || is_float(*from) || is_float(*to) || site.instruction.has("sat")) {
    return opaque(site);
  }
  const Value value = read(site.operand(1), site.state, site.number);
  if (width_of(*to) <= width_of(*from)) {
    if (width_of(*to) == 8) return value;
    const auto form = value.form();
    const Operand& target = site.operand(0);
    const bool fills =
        target.kind == OperandKind::kRegister && bits_of(at(body_.registers, target.index).type) == bits_of(*to);
    if (form && fills) return value;
    // A register that is wider than the type holds the value extended.
    const auto kept = form ? integers(site.state).seen(*form, {bits_of(*to), is_signed(*to)}) : std::nullopt;
    return kept ? Value::number(*kept) : opaque(site, Integers::range_of({bits_of(*to), is_signed(*to)}));
  }
  const auto form = value.form();
  const Format format{bits_of(*from), is_signed(*from)};
  const auto seen = form ? integers(site.state).seen(*form, format) : std::nullopt;
  if (seen) return Value::number(*seen);
  Value choices;
  for (const Choice& choice : value.choices) {
    const auto one = choice.base == kNumber ? integers(site.state).seen(choice.offset, format) : std::nullopt;
    if (!one) return opaque(site, Integers::range_of(format));
    choices.choices.push_back({kNumber, *one});
  }
  return choices;
}

Value Transfer::add(const Site& site, const Value& a, const Value& b, std::int64_t sign) const {
  Value result;
  for (const Choice& left : a.choices) {
    for (const Choice& right : b.choices) {
      const auto total = Form::combine(1, left.offset, sign, right.offset);
      int base = left.base == kNumber ? right.base : left.base;
      if (left.base != kNumber && right.base != kNumber) {
        if (left.base != right.base || sign > 0 || left.base == kOnChip) return opaque(site);
        base = kNumber;
      } else if (right.base != kNumber && sign < 0) {
        return opaque(site);
      }
      Choice choice{base, total ? symbols_.with_remainders(*total) : Form()};
      if (!total) {
        const Reason why{site.instruction.place, "an offset beyond 64 bits"};
        choice.offset = symbols_.opaque(site.number, 30 + base, Range{}, why);
      }
      if (!join(result, {{choice}, nullptr})) return opaque(site);
    }
  }
  return result;
}

Value Transfer::product(const Site& site) const {
  if (site.instruction.has("hi")) return opaque(site);
  auto a = form_operand(site, 1);
  auto b = form_operand(site, 2);
  if (!a || !b) return opaque(site);
  const bool reads_numbers = site.instruction.has("wide") || site.instruction.opcode == "mul24";
  if (reads_numbers) {
    const Format format = format_of(site.instruction);
    a = integers(site.state).seen(*a, format);
    b = integers(site.state).seen(*b, format);
    if (!a || !b) return opaque(site);
  }
  if (!a->is_constant()) std::swap(a, b);
  const auto product = a->is_constant() ? b->times(a->constant()) : std::nullopt;
  return product ? Value::number(*product) : opaque(site);
}

Value Transfer::shift(const Site& site) const {
  const auto value = form_operand(site, 1);
  const auto count = constant_operand(site, 2);
  const Format format = format_of(site.instruction);
  if (!value || !count || *count < 0 || *count >= std::min(format.bits, 62)) return opaque(site);
  const std::int64_t factor = std::int64_t{1} << *count;
  const auto shifted =
      site.instruction.opcode == "shl" ? value->times(factor) : integers(site.state).quotient(*value, factor, format);
  return shifted ? Value::number(*shifted) : opaque(site);
}

Value Transfer::division(const Site& site) const {
  const auto value = form_operand(site, 1);
  const auto divisor = constant_operand(site, 2);
  const Format format = format_of(site.instruction);
  if (!value || !divisor) return opaque(site);
  const bool is_rest = site.instruction.opcode == "rem";
  const auto result = is_rest ? integers(site.state).remainder(*value, *divisor, format)
                              : integers(site.state).quotient(*value, *divisor, format);
  if (result) return Value::number(*result);
  if (!is_rest || *divisor <= 0) return opaque(site);
  return opaque(site, format.is_signed ? Range{1 - *divisor, *divisor - 1} : Range{0, *divisor - 1});
}

Value Transfer::bits(const Site& site) const {
  const auto a = form_operand(site, 1);
  const auto b = form_operand(site, 2);
  const Format format = format_of(site.instruction);
  const std::string& opcode = site.instruction.opcode;
  if (!a || !b) {
    const auto mask = constant_operand(site, 2);
    return opcode == "and" && mask && *mask >= 0 ? opaque(site, {0, *mask}) : opaque(site);
  }
  const bool first_is_mask = a->is_constant();
  const Form& other = first_is_mask ? *b : *a;
  const Form& mask = first_is_mask ? *a : *b;
  if (opcode == "and" && mask.is_constant()) {
    const auto result = integers(site.state).bitwise_and(other, static_cast<std::uint64_t>(mask.constant()), format);
    if (result) return Value::number(*result);
    return mask.constant() >= 0 ? opaque(site, {0, mask.constant()}) : opaque(site);
  }
  if (opcode != "and") {
    if (const auto result = integers(site.state).bitwise_or(*a, *b, format)) return Value::number(*result);
  }
  const Range left = site.state.domain.range(*a);
  const Range right = site.state.domain.range(*b);
  if (left.low < 0 || right.low < 0 || !left.is_bounded() || !right.is_bounded()) return opaque(site);
  std::int64_t ones = 1;
  while (ones <= std::max(left.high, right.high)) ones *= 2;
  return opaque(site, {0, ones - 1});
}

/// bfe d, a, position, length of unsigned values.
Value Transfer::field(const Site& site) const {
  const auto value = form_operand(site, 1);
  const auto position = constant_operand(site, 2);
  const auto length = constant_operand(site, 3);
  const Format format = format_of(site.instruction);
  const bool fits = position && length && *position >= 0 && *length > 0 && *position + *length < format.bits;
  if (!value || !fits || format.is_signed) return opaque(site);
  const auto low = integers(site.state).remainder(*value, std::int64_t{1} << (*position + *length), format);
  const auto result = low ? integers(site.state).quotient(*low, std::int64_t{1} << *position, format) : std::nullopt;
  return result ? Value::number(*result) : opaque(site, {0, (std::int64_t{1} << *length) - 1});
}

Value Transfer::extreme(const Site& site) const {
  const auto a = form_operand(site, 1);
  const auto b = form_operand(site, 2);
  const Format format = format_of(site.instruction);
  const auto left = a ? integers(site.state).seen(*a, format) : std::nullopt;
  const auto right = b ? integers(site.state).seen(*b, format) : std::nullopt;
  if (!left || !right) return opaque(site);
  const bool is_least = site.instruction.opcode == "min";
  const auto gap = difference(*left, *right);
  const Range range = gap ? site.state.domain.range(*gap) : Range{};
  if (range.high <= 0) return Value::number(is_least ? *left : *right);
  if (range.low >= 0) return Value::number(is_least ? *right : *left);
  const Range low = site.state.domain.range(*left);
  const Range high = site.state.domain.range(*right);
  return is_least ? opaque(site, {std::min(low.low, high.low), std::min(low.high, high.high)})
                  : opaque(site, {std::max(low.low, high.low), std::max(low.high, high.high)});
}

Value Transfer::negative(const Site& site) const {
  const auto value = form_operand(site, 1);
  if (!value) return opaque(site);
  if (site.instruction.opcode == "abs") {
    const auto seen = integers(site.state).seen(*value, format_of(site.instruction));
    return seen && site.state.domain.range(*seen).low >= 0 ? Value::number(*seen) : opaque(site);
  }
  const auto reversed = value->times(-1);
  if (!reversed) return opaque(site);
  return Value::number(site.instruction.opcode == "not" ? reversed->plus(-1) : *reversed);
}

Value Transfer::selection(const Site& site) const {
  const Predicate condition = predicate(site.operand(3), site.state);
  Value first = read(site.operand(1), site.state, site.number);
  const Value second = read(site.operand(2), site.state, site.number);
  if (const auto known = site.state.domain.decided(condition)) return *known ? first : second;
  return join(first, second) ? first : opaque(site);
}

}  // namespace tangram::ptx
