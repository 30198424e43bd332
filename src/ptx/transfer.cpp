#include "transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "inline_calls.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {
int bits_of(Type type) { return type == Type::kPred ? 1 : std::max(8, 8 * width_of(type)); }

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
      state.registers[i] =
          unknown(number, 2000 + static_cast<int>(i), kNumber, bits, {instruction.place, "one of many values"});
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
  const Operand& target = site.operand(0);
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
  assign(target, evaluate(site, what), state, site.number);
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

}  // namespace tangram::ptx
