#include "inline_calls.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "opcodes.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {
namespace {

constexpr std::size_t kLongestBody = 200'000;  // instructions: some hundred times the longest kernels of libraries

std::string type_name(Type type) {
  switch (width_of(type)) {
    case 1: return "b8";
    case 2: return "b16";
    case 8: return "b64";
    default: return type == Type::kPred ? "pred" : "b32";
  }
}

Operand operand_of(OperandKind kind, int index) {
  Operand operand;
  operand.kind = kind;
  operand.index = index;
  return operand;
}

Operand address_of(int variable) {
  Operand address;
  address.kind = OperandKind::kAddress;
  address.parts.push_back(operand_of(OperandKind::kVariable, variable));
  return address;
}

class Inliner {
 public:
  Inliner(const Module& module, const Function& entry) : module_(module) {
    out_ = entry;
    out_.body.clear();
    out_.branch_targets.clear();
    std::vector<int> registers(entry.registers.size());
    std::vector<int> variables(entry.variables.size());
    for (std::size_t i = 0; i < registers.size(); ++i) registers[i] = static_cast<int>(i);
    for (std::size_t i = 0; i < variables.size(); ++i) variables[i] = static_cast<int>(i);
    emit({entry, registers, variables, false});
  }

  Function result() { return std::move(out_); }

 private:
  struct Frame {
    const Function& function;
    std::vector<int> registers;  ///< of the function, in out_
    std::vector<int> variables;
    bool is_call = false;
  };

  [[nodiscard]] const Function* callee_of(const Instruction& call) const {
    const Operand* name = parts_of_call(call).callee;
    if (name == nullptr || name->kind != OperandKind::kFunction) return nullptr;
    const Function* callee = module_.find(name->name);
    if (callee == nullptr || !callee->has_body || callee->is_entry) return nullptr;
    const bool recursive = std::ranges::find(open_, callee) != open_.end();
    return recursive || out_.body.size() + callee->body.size() > kLongestBody ? nullptr : callee;
  }

  void remap(Operand& operand, const Frame& frame) const {
    for (Operand& part : operand.parts) remap(part, frame);
    if (operand.kind == OperandKind::kRegister) operand.index = at(frame.registers, operand.index);
    if (operand.kind == OperandKind::kVariable) operand.index = at(frame.variables, operand.index);
  }

  [[nodiscard]] Instruction remapped(const Instruction& instruction, const Frame& frame) const {
    Instruction copy = instruction;
    for (Operand& operand : copy.operands) remap(operand, frame);
    if (copy.guard) copy.guard->reg = at(frame.registers, copy.guard->reg);
    return copy;
  }

  static void shift_labels(Operand& operand, const std::vector<int>& positions) {
    for (Operand& part : operand.parts) shift_labels(part, positions);
    if (operand.kind == OperandKind::kLabel) operand.index = at(positions, operand.index);
  }

  void emit(const Frame& frame) {
    open_.push_back(&frame.function);
    std::vector<int> positions;
    std::vector<std::size_t> own;      // instructions of this frame, whose labels are still those of the function
    std::vector<std::size_t> returns;  // branches to the end
    for (const Instruction& instruction : frame.function.body) {
      positions.push_back(static_cast<int>(out_.body.size()));
      Instruction copy = remapped(instruction, frame);
      const Function* callee = instruction.opcode == "call" && !instruction.guard ? callee_of(instruction) : nullptr;
      if (callee != nullptr && fits(*callee, parts_of_call(copy))) {
        emit_call(*callee, copy);
        continue;
      }
      if (frame.is_call && instruction.opcode == "ret") {
        copy.opcode = "bra";
        copy.modifiers.clear();
        copy.operands = {operand_of(OperandKind::kLabel, 0)};
        returns.push_back(out_.body.size());
      } else {
        own.push_back(out_.body.size());
      }
      out_.body.push_back(std::move(copy));
    }
    positions.push_back(static_cast<int>(out_.body.size()));
    for (const std::size_t i : own) {
      for (Operand& operand : out_.body[i].operands) shift_labels(operand, positions);
    }
    for (const std::size_t i : returns) out_.body[i].operands[0].index = positions.back();
    for (const auto& [label, targets] : frame.function.branch_targets) {
      for (const int target : targets) out_.branch_targets[label].push_back(at(positions, target));
    }
    open_.pop_back();
  }

  static bool fits(const Function& callee, const CallParts& call) {
    const std::size_t results = call.results == nullptr ? 0 : call.results->parts.size();
    const std::size_t arguments = call.arguments == nullptr ? 0 : call.arguments->parts.size();
    return results == static_cast<std::size_t>(callee.results) &&
           arguments == static_cast<std::size_t>(callee.parameters);
  }

  /// Formal parameters become the variables that are passed, or copies of the values.
  void emit_call(const Function& callee, const Instruction& call) {
    const CallParts parts = parts_of_call(call);
    Frame frame{callee, {}, {}, true};
    for (const Register& reg : callee.registers) {
      frame.registers.push_back(static_cast<int>(out_.registers.size()));
      out_.registers.push_back(reg);
    }
    for (const Variable& variable : callee.variables) {
      frame.variables.push_back(static_cast<int>(out_.variables.size()));
      out_.variables.push_back(variable);
    }
    const auto actual = [&](int formal) -> const Operand& {
      return formal < callee.results ? at(parts.results->parts, formal)
                                     : at(parts.arguments->parts, formal - callee.results);
    };
    const int formals = callee.results + callee.parameters;
    for (int formal = 0; formal < formals; ++formal) {
      const bool by_name = at(callee.formals, formal) < 0 && actual(formal).kind == OperandKind::kVariable;
      if (by_name) at(frame.variables, formal) = actual(formal).index;
    }
    for (int formal = callee.results; formal < formals; ++formal) copy(frame, formal, actual(formal), true, call.place);
    emit(frame);
    for (int formal = 0; formal < callee.results; ++formal) copy(frame, formal, actual(formal), false, call.place);
  }

  /// Between what is passed and the formal parameter. A variable for a variable is the same one.
  void copy(const Frame& frame, int formal, const Operand& actual, bool inwards, Place place) {
    const int reg = at(frame.function.formals, formal);
    const bool formal_in_memory = reg < 0;
    const bool actual_in_memory = actual.kind == OperandKind::kVariable;
    if (formal_in_memory && actual_in_memory) return;
    const Operand inside = formal_in_memory ? address_of(at(frame.variables, formal))
                                            : operand_of(OperandKind::kRegister, at(frame.registers, reg));
    const Operand outside = actual_in_memory ? address_of(actual.index) : actual;
    const Operand& to = inwards ? inside : outside;
    const Operand& from = inwards ? outside : inside;
    const std::string type = type_name(at(frame.function.variables, formal).type);
    if (!formal_in_memory && !actual_in_memory) return add("mov", {type}, {to, from}, place);
    add(inwards == formal_in_memory ? "st" : "ld", {"param", type}, {to, from}, place);
  }

  void add(std::string opcode, std::vector<std::string> modifiers, std::vector<Operand> operands, Place place) {
    Instruction instruction;
    instruction.opcode = std::move(opcode);
    instruction.modifiers = std::move(modifiers);
    instruction.operands = std::move(operands);
    instruction.place = place;
    out_.body.push_back(std::move(instruction));
  }

  const Module& module_;
  Function out_;
  std::vector<const Function*> open_;
};

}  // namespace

CallParts parts_of_call(const Instruction& call) {
  CallParts parts;
  for (const Operand& operand : call.operands) {
    if (operand.kind == OperandKind::kList) {
      (parts.callee == nullptr ? parts.results : parts.arguments) = &operand;
    } else if (parts.callee == nullptr) {
      parts.callee = &operand;
    }
  }
  return parts;
}

Function inline_calls(const Module& module, const Function& entry) { return Inliner(module, entry).result(); }

}  // namespace tangram::ptx
