#include "register_origins.hpp"

#include <algorithm>
#include <array>

#include "inline_calls.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {
namespace {

constexpr std::int64_t kPointerBytes = 8;

const Operand* address_in(const Instruction& instruction) {
  const auto found = std::ranges::find(instruction.operands, OperandKind::kAddress, &Operand::kind);
  return found == instruction.operands.end() ? nullptr : &*found;
}

/// A value of 32 bits or fewer that is made longer is no pointer.
bool widens(const Instruction& instruction) {
  const auto from = instruction.type();
  return instruction.opcode == "cvt" && from && width_of(*from) < kPointerBytes;
}

Base on_chip() { return {BaseKind::kOnChip, -1, 0}; }

}  // namespace

bool is_harmless_call(std::string_view name) {
  constexpr std::array<std::string_view, 4> kHarmless = {"vprintf", "__assertfail", "__assert_fail", "free"};
  return std::ranges::find(kHarmless, name) != kHarmless.end();
}

RegisterOrigins::RegisterOrigins(const Module& module, const Function& body)
    : module_(module), body_(body), registers_(body.registers.size()) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (const Instruction& instruction : body.body) changed = step(instruction) || changed;
  }
}

Origins RegisterOrigins::of(const Operand& operand) const {
  switch (operand.kind) {
    case OperandKind::kRegister: return at(registers_, operand.index);
    case OperandKind::kComponent: return of(operand.parts.front());
    case OperandKind::kGlobal: {
      const Space space = at(module_.variables, operand.index).space;
      const bool is_global = space == Space::kGlobal || space == Space::kConst;
      return Origins::of(is_global ? Base{BaseKind::kVariable, operand.index, 0} : on_chip());
    }
    case OperandKind::kVariable:
      return Origins::of(is_formal(operand.index) ? Base{BaseKind::kTensorMap, operand.index, 0} : on_chip());
    case OperandKind::kAddress: return operand.parts.empty() ? Origins() : of(operand.parts.front());
    case OperandKind::kVector:
    case OperandKind::kPair: {
      Origins result = Origins::number();
      for (const Operand& part : operand.parts) result = Origins::sum(result, of(part));
      return result;
    }
    default: return Origins::number();
  }
}

bool RegisterOrigins::step(const Instruction& instruction) {
  const OpcodeClass what = class_of(instruction);
  switch (what) {
    case OpcodeClass::kLoad: return load(instruction);
    case OpcodeClass::kStore: return store(instruction);
    case OpcodeClass::kCall: return call(instruction);
    case OpcodeClass::kAsyncCopy: return kept_.join(Origins::of({BaseKind::kLoaded, -1, 0}, true));
    default: break;
  }
  if (results_of(what, instruction) == 0) return false;
  return define(instruction.operands.front(), combined(what, instruction));
}

bool RegisterOrigins::define(const Operand& target, const Origins& value) {
  if (target.kind == OperandKind::kRegister) return at(registers_, target.index).join(value);
  bool changed = false;
  for (const Operand& part : target.parts) changed = define(part, value) || changed;
  return changed;
}

Origins RegisterOrigins::joined(const Instruction& instruction, std::size_t first, std::size_t last) const {
  Origins result;
  for (std::size_t i = first; i < std::min(last, instruction.operands.size()); ++i) {
    const Operand& operand = instruction.operands[i];
    const bool is_predicate =
        operand.kind == OperandKind::kRegister && at(body_.registers, operand.index).type == Type::kPred;
    if (!is_predicate) result.join(of(operand));
  }
  return result;
}

Origins RegisterOrigins::combined(OpcodeClass what, const Instruction& instruction) const {
  const std::size_t all = instruction.operands.size();
  switch (what) {
    case OpcodeClass::kMove:
      return widens(instruction) ? joined(instruction, 1, all).scaled() : joined(instruction, 1, all);
    case OpcodeClass::kSum:
    case OpcodeClass::kBits: {
      Origins result = Origins::number();
      for (std::size_t i = 1; i < all; ++i) result = Origins::sum(result, of(instruction.operands[i]));
      return result;
    }
    case OpcodeClass::kSumOfProduct: {
      if (all < 4) return Origins::of({});
      const Origins product = Origins::sum(of(instruction.operands[1]), of(instruction.operands[2])).scaled();
      return Origins::sum(product, of(instruction.operands[3]));
    }
    case OpcodeClass::kScale: {
      Origins result = joined(instruction, 1, all).scaled();
      return all > 1 && !result.sums().empty() ? result : Origins::number();
    }
    case OpcodeClass::kMatrix: return Origins::number(true);
    case OpcodeClass::kAtomic:
    case OpcodeClass::kTexture:
    case OpcodeClass::kSurface: return Origins::of({BaseKind::kLoaded, -1, 0}, true);
    default: return Origins::of({BaseKind::kUnknown, -1, 0}, true);
  }
}

/// Fields of a parameter that is passed by value have bases of their own.
Base RegisterOrigins::parameter_base(int parameter, std::int64_t offset) const {
  const bool is_struct = body_.parameter(parameter).is_array;
  return {BaseKind::kParameter, parameter, is_struct ? offset - offset % kPointerBytes : 0};
}

bool RegisterOrigins::load_parameter(const Instruction& instruction, const Operand& address) {
  const Operand& base = address.parts.front();
  const Operand& target = instruction.operands.front();
  if (base.kind == OperandKind::kVariable && !is_formal(base.index)) return define(target, arguments_[base.index]);
  const std::int64_t width = instruction.type() ? width_of(*instruction.type()) : 0;
  const auto value = [&](int parameter, std::int64_t offset) {
    return width < 4 ? Origins::number() : Origins::of(parameter_base(parameter, offset));
  };
  if (base.kind == OperandKind::kVariable) {
    const std::int64_t first = address.integer + base.integer;
    if (target.kind != OperandKind::kVector) return define(target, value(base.index, first));
    bool changed = false;
    for (std::size_t i = 0; i < target.parts.size(); ++i) {
      changed = define(target.parts[i], value(base.index, first + static_cast<std::int64_t>(i) * width)) || changed;
    }
    return changed;
  }
  // Through a register that holds the address of a parameter.
  Origins result;
  const Origins addresses = of(base);
  for (const Sum& sum : addresses.sums()) {
    for (const Base& origin : sum) {
      if (origin.kind == BaseKind::kTensorMap) result.join(value(origin.index, address.integer));
    }
  }
  if (result.sums().empty()) result = Origins::of({}, true);
  return define(target, result);
}

bool RegisterOrigins::load(const Instruction& instruction) {
  const Operand* address = address_in(instruction);
  if (address == nullptr || address->parts.empty() || instruction.operands.size() < 2) return false;
  const Space space = space_of(instruction);
  if (space == Space::kParam) return load_parameter(instruction, *address);
  const Operand& target = instruction.operands.front();
  const Origins loaded = Origins::of({BaseKind::kLoaded, -1, 0}, true);
  if (space == Space::kShared || space == Space::kLocal) {
    return define(target, kept_.sums().empty() ? Origins::number() : kept_);
  }
  bool changed = define(target, loaded);
  if (space == Space::kGeneric) changed = define(target, kept_) || changed;
  return changed;
}

bool RegisterOrigins::store(const Instruction& instruction) {
  const Operand* address = address_in(instruction);
  if (address == nullptr || address->parts.empty()) return false;
  const Space space = space_of(instruction);
  if (space == Space::kGlobal) return false;
  const Origins value = joined(instruction, 1, instruction.operands.size());
  const Operand& base = address->parts.front();
  if (space == Space::kParam && base.kind == OperandKind::kVariable) return arguments_[base.index].join(value);
  return kept_.join(value);
}

bool RegisterOrigins::call(const Instruction& instruction) {
  const CallParts parts = parts_of_call(instruction);
  if (parts.results == nullptr) return false;
  const bool allocates = parts.callee != nullptr && parts.callee->name == "malloc";
  const Origins value = Origins::of({allocates ? BaseKind::kLoaded : BaseKind::kUnknown, -1, 0}, true);
  bool changed = false;
  for (const Operand& result : parts.results->parts) {
    changed = (result.kind == OperandKind::kVariable ? arguments_[result.index].join(value) : define(result, value)) ||
              changed;
  }
  return changed;
}

}  // namespace tangram::ptx
