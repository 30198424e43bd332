#include "transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "inline_calls.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {
namespace {

int bits_of(Type type) { return type == Type::kPred ? 1 : std::max(8, 8 * width_of(type)); }

bool is_data(OpcodeClass what) {
  return what == OpcodeClass::kLoad || what == OpcodeClass::kAtomic || what == OpcodeClass::kMatrix;
}

}  // namespace

// Reading and writing registers

Value Transfer::unknown(int place, int slot, int base, int bits, const Reason& why) const {
  const Range range = base == kNumber && bits < 64 ? Integers::range_of({bits, false}) : Range{};
  return {{{base, symbols_.opaque(place, slot, range, why)}}, nullptr};
}

/// Why an operand is not known, where one is not.
const Reason* Transfer::cause(const Site& site) const {
  for (std::size_t i = 1; i < site.size(); ++i) {
    const Value value = read(site.operand(i), site.state, site.number);
    for (const Choice& choice : value.choices) {
      if (const Reason* why = symbols_.doubtful(choice.offset)) return why;
    }
  }
  return nullptr;
}

Value Transfer::opaque(const Site& site, Range range, std::string_view why) const {
  const Reason* inherited = why.empty() ? cause(site) : nullptr;
  const Reason reason =
      inherited != nullptr ? *inherited
                           : Reason{site.instruction.place,
                                    fmt::format("{} {}", site.instruction.text(), why.empty() ? "is not affine" : why)};
  return Value::number(symbols_.opaque(site.number, 0, range, reason));
}

Value Transfer::opaque(const Site& site) const {
  const auto type = site.instruction.first_type();
  const int bits = type ? bits_of(*type) : 64;
  const bool wide = site.instruction.has("wide");
  return opaque(site, bits < 64 && !wide ? Integers::range_of({bits, false}) : Range{});
}

Transfer::Format Transfer::format_of(const Instruction& instruction) {
  const Type type = instruction.type().value_or(Type::kB64);
  return {bits_of(type), is_signed(type)};
}

Value Transfer::read(const Operand& operand, const State& state, int number) const {
  switch (operand.kind) {
    case OperandKind::kRegister: {
      const Value& value = at(state.registers, operand.index);
      if (!value.choices.empty()) return value;
      const int bits = bits_of(at(body_.registers, operand.index).type);
      return unknown(number, 100 + operand.index, kNumber, bits, {{}, "a register that is not set"});
    }
    case OperandKind::kInteger: return Value::number(Form(operand.integer));
    case OperandKind::kSpecial: return special(operand.name, number);
    case OperandKind::kVariable:
    case OperandKind::kGlobal: return {{{kOnChip, Form(operand.integer)}}, nullptr};
    default: return unknown(number, 1, kNumber, 64, {at(body_.body, number).place, "an operand that is not followed"});
  }
}

Value Transfer::special(std::string_view name, int number) const {
  constexpr std::array<std::string_view, 3> kAxes = {".x", ".y", ".z"};
  for (int axis = 0; axis < 3; ++axis) {
    if (!name.ends_with(at(kAxes, axis))) continue;
    const std::string_view index = name.substr(0, name.size() - 2);
    if (index == "tid") return Value::number(symbols_.thread(axis));
    if (index == "ctaid") return Value::number(symbols_.block(axis));
    if (index == "ntid") return Value::number(Form(at(launch_.block, axis)));
    if (index == "nctaid") return Value::number(Form(at(launch_.grid, axis)));
  }
  constexpr std::int64_t kWarp = 32;
  if (name == "laneid") {
    const bool is_line = launch_.block[1] == 1 && launch_.block[2] == 1;
    if (is_line && launch_.block[0] <= kWarp) return Value::number(symbols_.thread(0));
    if (is_line) return Value::number(Form::of(symbols_.divide(symbols_.thread(0), launch_.block[0], kWarp).remainder));
    return Value::number(symbols_.opaque(number, 2, {0, kWarp - 1}, {{}, "the lane within a warp"}));
  }
  const Reason why{{}, fmt::format("%{} differs from run to run", name)};
  return unknown(number, 3, kNumber, name.ends_with("64") ? 64 : 32, why);
}

std::optional<Form> Transfer::form_operand(const Site& site, std::size_t i) const {
  return i < site.size() ? read(site.operand(i), site.state, site.number).form() : std::nullopt;
}

std::optional<std::int64_t> Transfer::constant_operand(const Site& site, std::size_t i) const {
  const auto form = form_operand(site, i);
  return form && form->is_constant() ? std::optional(form->constant()) : std::nullopt;
}

Predicate Transfer::predicate(const Operand& operand, const State& state) const {
  Predicate found;
  if (operand.kind == OperandKind::kRegister) found = at(state.registers, operand.index).predicate;
  if (operand.kind == OperandKind::kInteger) found = constant(operand.integer != 0);
  return operand.negated ? negation(found) : found;
}

Predicate Transfer::guard(const Guard& guard, const State& state) const {
  const Predicate& found = at(state.registers, guard.reg).predicate;
  return guard.negated ? negation(found) : found;
}

Value Transfer::address(int number, const Operand& address, const State& state) const {
  Value value = read(address.parts.front(), state, number);
  for (Choice& choice : value.choices) choice.offset = choice.offset.plus(address.integer);
  return value;
}

void Transfer::assign(const Operand& target, Value value, State& state, int number) const {
  if (target.kind == OperandKind::kRegister) {
    at(state.registers, target.index) = std::move(value);
    return;
  }
  if (target.kind == OperandKind::kComponent) return assign(target.parts.front(), {}, state, number);
  for (std::size_t i = 0; i < target.parts.size(); ++i) {
    const Operand& part = target.parts[i];
    if (part.kind != OperandKind::kRegister) continue;
    const int bits = bits_of(at(body_.registers, part.index).type);
    at(state.registers, part.index) =
        unknown(number, 10 + static_cast<int>(i), kNumber, bits, {at(body_.body, number).place, "a part of a vector"});
  }
}

void Transfer::apply(int number, State& state) const {
  const Instruction& instruction = at(body_.body, number);
  if (!instruction.guard) return assign_results({number, instruction, state}, state);
  const Predicate condition = guard(*instruction.guard, state);
  if (const auto known = state.domain.decided(condition)) {
    if (*known) assign_results({number, instruction, state}, state);
    return;
  }
  State guarded = state;
  guarded.domain.assume(condition, true, {instruction.place, ""});
  assign_results({number, instruction, guarded}, guarded);
  for (std::size_t i = 0; i < state.registers.size(); ++i) {
    if (state.registers[i] == guarded.registers[i]) continue;
    if (!join(state.registers[i], guarded.registers[i])) {
      const int bits = bits_of(body_.registers[i].type);
      state.registers[i] = unknown(number, 2000 + static_cast<int>(i), kNumber, bits, {instruction.place, "one of many values"});
    }
  }
  for (auto& [place, value] : guarded.arguments) {
    const auto other = state.arguments.find(place);
    if (other == state.arguments.end() || !(other->second == value)) state.arguments.erase(place);
  }
}

void Transfer::assign_results(const Site& site, State& state) const {
  const OpcodeClass what = class_of(site.instruction);
  if (what == OpcodeClass::kCall) return call(site, state);
  if (what == OpcodeClass::kStore && space_of(site.instruction) == Space::kParam) return store_argument(site, state);
  if (results_of(what, site.instruction) == 0) return;
  const Operand target = site.operand(0);
  if (what == OpcodeClass::kLoad && target.kind == OperandKind::kVector) {
    const std::int64_t width = site.instruction.type() ? width_of(*site.instruction.type()) : 0;
    std::vector<Value> values;
    for (std::size_t i = 0; i < target.parts.size(); ++i) {
      values.push_back(load(site, static_cast<std::int64_t>(i) * width));
    }
    for (std::size_t i = 0; i < values.size(); ++i) assign(target.parts[i], std::move(values[i]), state, site.number);
    return;
  }
  if (site.instruction.opcode == "setp") {
    const Predicate holds = comparison(site);
    const bool is_pair = target.kind == OperandKind::kPair;
    const Value any = Value::number(symbols_.opaque(site.number, 4, {0, 1}, {}));
    assign(is_pair ? target.parts[0] : target, {any.choices, holds}, state, site.number);
    if (is_pair) assign(target.parts[1], {any.choices, negation(holds)}, state, site.number);
    return;
  }
  assign(target, evaluate(site), state, site.number);
}

// Parameters

Value Transfer::argument(int parameter, std::int64_t offset, const Site& site) const {
  if (!body_.parameter(parameter).is_array && offset == 0) {
    const Argument& given = at(launch_.arguments, parameter);
    if (const auto* scalar = std::get_if<std::int64_t>(&given)) return Value::number(Form(*scalar));
    const auto type = site.instruction.type();
    if (type && width_of(*type) == 8) return {{{parameter, Form(std::get<BufferArgument>(given).offset)}}, nullptr};
  }
  return opaque(site, Range{}, "reads a part of a parameter");
}

Value Transfer::load(const Site& site, std::int64_t extra) const {
  const auto type = site.instruction.type();
  const int bits = type ? bits_of(*type) : 64;
  if (site.size() < 2 || site.operand(1).kind != OperandKind::kAddress) return opaque(site);
  const Operand& base = site.operand(1).parts.front();
  if (space_of(site.instruction) == Space::kParam && base.kind == OperandKind::kVariable) {
    const std::int64_t offset = site.operand(1).integer + base.integer + extra;
    if (base.index < body_.parameters) return argument(base.index, offset, site);
    const auto kept = site.state.arguments.find({base.index, offset});
    if (kept != site.state.arguments.end()) return kept->second;
  }
  const Range range = bits < 64 ? Integers::range_of({bits, type && is_signed(*type)}) : Range{};
  const Reason why{site.instruction.place,
                   fmt::format("indirect offset: it was loaded by {}", site.instruction.text())};
  return Value::number(symbols_.opaque(site.number, static_cast<int>(extra), range, why));
}

void Transfer::store_argument(const Site& site, State& state) const {
  if (site.size() < 2 || site.operand(0).kind != OperandKind::kAddress) return state.arguments.clear();
  const Operand& base = site.operand(0).parts.front();
  if (base.kind != OperandKind::kVariable) return state.arguments.clear();
  const std::int64_t offset = site.operand(0).integer + base.integer;
  std::erase_if(state.arguments, [&](const auto& kept) { return kept.first == std::pair(base.index, offset); });
  if (site.operand(1).kind == OperandKind::kVector) return;
  Value value = read(site.operand(1), state, site.number);
  state.arguments.insert_or_assign({base.index, offset}, std::move(value));
}

void Transfer::call(const Site& site, State& state) const {
  const CallParts parts = parts_of_call(site.instruction);
  state.arguments.clear();
  if (parts.results == nullptr) return;
  for (const Operand& result : parts.results->parts) {
    if (result.kind == OperandKind::kRegister) {
      assign(result, opaque(site, Range{}, "returns what is not known"), state, site.number);
    }
  }
}

// Arithmetic

Value Transfer::evaluate(const Site& site) const {
  const std::string& opcode = site.instruction.opcode;
  const auto type = site.instruction.type();
  const OpcodeClass what = class_of(site.instruction);
  if (what == OpcodeClass::kLoad) return load(site, 0);
  if (is_data(what)) {
    const auto first = site.instruction.type();
    const int bits = first ? bits_of(*first) : 64;
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

// Predicates

Predicate Transfer::relation(std::string_view name, const Site& site) const {
  const Format type = format_of(site.instruction);
  const bool is_unsigned_name = name == "lo" || name == "ls" || name == "hi" || name == "hs";
  const bool needs_order = name != "eq" && name != "ne";
  const Value left = read(site.operand(1), site.state, site.number);
  const Value right = read(site.operand(2), site.state, site.number);
  if (!left.is_single() || !right.is_single()) return nullptr;
  const Choice& a = left.choices.front();
  const Choice& b = right.choices.front();
  std::optional<Form> gap;
  if (a.base == kNumber && b.base == kNumber) {
    const Format format{type.bits, type.is_signed && !is_unsigned_name};
    const auto x = integers(site.state).seen(a.offset, format);
    const auto y = integers(site.state).seen(b.offset, format);
    if (x && y) {
      gap = difference(*x, *y);
    } else if (!needs_order) {  // equal modulo 2^width
      const auto rest = difference(a.offset, b.offset);
      gap = rest ? integers(site.state).seen(*rest, {type.bits, true}) : std::nullopt;
    }
  } else if (a.base == b.base && a.base >= 0) {
    gap = difference(a.offset, b.offset);
  } else if (!needs_order && (a.base >= 0) != (b.base >= 0)) {  // a pointer to an object is not null
    const Choice& number = a.base >= 0 ? b : a;
    if (number.base == kNumber && number.offset == Form(0)) return constant(name == "ne");
  }
  if (!gap) return nullptr;
  const auto reversed = gap->times(-1);
  if (!reversed) return nullptr;
  if (name == "eq") return compare({*gap, Relation::kZero});
  if (name == "ne") return compare({*gap, Relation::kNotZero});
  if (name == "lt" || name == "lo") return compare({gap->plus(1), Relation::kAtMostZero});
  if (name == "le" || name == "ls") return compare({*gap, Relation::kAtMostZero});
  if (name == "gt" || name == "hi") return compare({reversed->plus(1), Relation::kAtMostZero});
  if (name == "ge" || name == "hs") return compare({*reversed, Relation::kAtMostZero});
  return nullptr;
}

/// setp.lt.and.s32 p, a, b, q
Predicate Transfer::comparison(const Site& site) const {
  const auto type = site.instruction.type();
  if (site.size() < 3 || site.instruction.modifiers.empty() || !type || is_float(*type)) return nullptr;
  const Predicate holds = relation(site.instruction.modifiers.front(), site);
  if (site.size() < 4) return holds;
  const Predicate other = predicate(site.operand(3), site.state);
  if (site.instruction.has("and")) return both(holds, other);
  return site.instruction.has("or") ? either(holds, other) : nullptr;
}

Predicate Transfer::logic(const Site& site) const {
  const std::string& opcode = site.instruction.opcode;
  if (site.size() < 2) return nullptr;
  const Predicate first = predicate(site.operand(1), site.state);
  if (opcode == "mov") return first;
  if (opcode == "not") return negation(first);
  if (site.size() < 3) return nullptr;
  const Predicate second = predicate(site.operand(2), site.state);
  if (opcode == "and") return both(first, second);
  if (opcode == "or") return either(first, second);
  if (opcode == "xor") {
    const auto known = site.state.domain.decided(second);
    if (known) return *known ? negation(first) : first;
  }
  return nullptr;
}

}  // namespace tangram::ptx
