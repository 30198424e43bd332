#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "matrix.hpp"
#include "op_table.hpp"
#include "program.hpp"
#include "tangram/base/at.hpp"
#include "trouble.hpp"

namespace tangram::interpret {
namespace {

using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

std::int64_t aligned(std::int64_t offset, std::int64_t alignment) {
  const std::int64_t step = std::max<std::int64_t>(alignment, 1);
  return (offset + step - 1) / step * step;
}

Diagnostic unknown(
    const ptx::Module& module, ptx::Place place, std::string what,
    std::string hint = "the interpreter runs integers, floating point, shared memory, shuffles and atomics") {
  return trouble(module, place, "not-interpreted", std::move(what), std::move(hint));
}

std::optional<Special> special_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Special>, 8> kNames = {{{"tid", Special::kTid},
                                                                           {"ntid", Special::kNtid},
                                                                           {"ctaid", Special::kCtaid},
                                                                           {"nctaid", Special::kNctaid},
                                                                           {"laneid", Special::kLane},
                                                                           {"warpid", Special::kWarp},
                                                                           {"clock", Special::kClock},
                                                                           {"clock64", Special::kClock}}};
  const auto* found = std::ranges::find(kNames, name, &std::pair<std::string_view, Special>::first);
  if (found != kNames.end()) return found->second;
  return name.starts_with("lanemask_") ? std::optional(Special::kLaneMask) : std::nullopt;
}

class Loader {
 public:
  explicit Loader(const ptx::Module& module) { program_.module = &module; }

  Expected<Program> run(const std::string& entry) {
    place_shared();
    const ptx::Function* function = program_.module->find(entry);
    if (function == nullptr || !function->is_entry || !function->has_body) {
      return fail(unknown(*program_.module, {}, fmt::format("there is no entry \"{}\"", entry), "name an entry"));
    }
    (void)routine_of(function);
    for (std::size_t i = 0; i < program_.routines.size() && !mistake_; ++i) fill(static_cast<int>(i));
    if (mistake_) return fail(*std::move(mistake_));
    return std::move(program_);
  }

 private:
  void report(const ptx::Instruction& at, std::string what) {
    if (!mistake_) mistake_ = unknown(*program_.module, at.place, std::move(what));
  }

  /// What a launch adds to shared memory comes last: there variables of unknown size begin.
  void place_shared() {
    const auto place = [&](const ptx::Variable& variable, bool is_external) {
      if (variable.space != Space::kShared || variable.is_external != is_external) return;
      const std::int64_t offset = aligned(program_.shared_bytes, variable.alignment);
      shared_[&variable] = offset;
      if (!is_external) program_.shared_bytes = offset + variable.bytes;
    };
    for (const bool is_external : {false, true}) {
      for (const ptx::Variable& variable : program_.module->variables) place(variable, is_external);
      for (const ptx::Function& function : program_.module->functions) {
        for (const ptx::Variable& variable : function.variables) place(variable, is_external);
      }
    }
  }

  int routine_of(const ptx::Function* function) {
    for (std::size_t i = 0; i < program_.routines.size(); ++i) {
      if (program_.routines[i].source == function) return static_cast<int>(i);
    }
    Routine routine;
    routine.source = function;
    for (const ptx::Register& reg : function->registers) routine.widths.push_back(bit_count(reg.type));
    for (const ptx::Variable& variable : function->variables) {
      if (variable.space == Space::kShared) {
        routine.offsets.push_back(shared_.at(&variable));
        continue;
      }
      std::int64_t& used = variable.space == Space::kLocal ? routine.local_bytes : routine.parameter_bytes;
      used = aligned(used, variable.alignment);
      routine.offsets.push_back(used);
      used += variable.bytes;
    }
    program_.routines.push_back(std::move(routine));
    return static_cast<int>(program_.routines.size()) - 1;
  }

  void fill(int number) {
    std::vector<Step> steps;
    const ptx::Function& function = *at(program_.routines, number).source;
    for (const ptx::Instruction& instruction : function.body) steps.push_back(step_of(function, instruction));
    at(program_.routines, number).steps = std::move(steps);
  }

  Step step_of(const ptx::Function& function, const ptx::Instruction& instruction) {
    Step step;
    step.source = &instruction;
    const auto op = op_named(instruction);
    if (!op) report(instruction, fmt::format("{} is not interpreted", instruction.text()));
    step.op = op ? op->op : Op::kNop;
    if (instruction.guard) {
      step.guard = instruction.guard->reg;
      step.guard_negated = instruction.guard->negated;
    }
    if (step.op == Op::kNop) return step;
    if (step.op == Op::kMatrixProduct || step.op == Op::kLoadMatrix || step.op == Op::kStoreMatrix) {
      take_matrices(step, function, instruction);
      return step;
    }
    step.type = instruction.type().value_or(Type::kB32);
    step.result = instruction.first_type().value_or(Type::kB32);
    step.elements = instruction.vector_length();
    for (const std::string& modifier : instruction.modifiers) take_modifier(step, instruction, modifier);
    check_types(step, instruction);
    if (step.op == Op::kBrx) {
      for (const ptx::Operand& operand : instruction.operands) {
        const auto found = function.branch_targets.find(operand.name);
        if (found != function.branch_targets.end()) step.targets = &found->second;
      }
    }
    if (step.op == Op::kCall) {
      take_call(step, function, instruction);
      return step;
    }
    for (const ptx::Operand& operand : instruction.operands) step.operands.push_back(ref_of(step, function, operand));
    check_shape(step, instruction, op ? op->operands : 0);
    return step;
  }

  void take_modifier(Step& step, const ptx::Instruction& instruction, const std::string& modifier) {
    if (!is_known_modifier(modifier)) {
      return report(instruction, fmt::format("{}: .{} is not interpreted", instruction.text(), modifier));
    }
    if (is_choice(modifier)) {
      (step.choice.empty() ? step.choice : step.second) = modifier;
      step.high = step.high || modifier == "hi";
    }
    if (modifier == "clamp" || modifier == "wrap" || modifier == "to") step.second = modifier;
    step.wide = step.wide || modifier == "wide";
    step.flush = step.flush || modifier == "ftz";
    step.saturate = step.saturate || modifier == "sat";
    step.abs_or_relu = step.abs_or_relu || modifier == "relu" || modifier == "noftz";
    if (modifier.starts_with("shared")) step.space = Space::kShared;
    if (modifier == "global") step.space = step.op == Op::kCopy ? step.space : Space::kGlobal;
    if (modifier == "const") step.space = Space::kConst;
    if (modifier == "local") step.space = Space::kLocal;
    if (modifier.starts_with("param")) step.space = Space::kParam;
  }

  void check_types(const Step& step, const ptx::Instruction& instruction) {
    const bool packs = step.op == Op::kCvt && instruction.operands.size() > 2;
    if (packs != (step.op == Op::kCvt && (step.result == Type::kF16x2 || step.result == Type::kBf16x2))) {
      report(instruction, fmt::format("{} is not interpreted", instruction.text()));
    }
    const bool is_packed = step.type == Type::kF16x2 || step.type == Type::kBf16x2;
    const bool moves = step.op == Op::kMov || step.op == Op::kLd || step.op == Op::kSt || step.op == Op::kSelp;
    constexpr std::array kPacked = {Op::kAdd, Op::kSub, Op::kMul, Op::kFma, Op::kMin, Op::kMax, Op::kNeg, Op::kAbs};
    if (is_packed && !moves && std::ranges::find(kPacked, step.op) == kPacked.end()) {
      report(instruction, fmt::format("{} of packed numbers is not interpreted", instruction.text()));
    }
    if (step.abs_or_relu || (step.op == Op::kBarrier && instruction.has("arrive"))) {
      report(instruction, fmt::format("{} is not interpreted", instruction.text()));
    }
    if ((step.op == Op::kAtom || step.op == Op::kRed) && step.elements > 1) {
      report(instruction, fmt::format("{} of vectors is not interpreted", instruction.text()));
    }
  }

  void check_shape(const Step& step, const ptx::Instruction& instruction, std::size_t least) {
    if (step.choice == "cas") ++least;
    if (step.operands.size() < least) {
      report(instruction,
             fmt::format("{} has {} operands and needs {}", instruction.text(), step.operands.size(), least));
    }
    const auto takes_address = [&](std::size_t i) {
      return i < instruction.operands.size() && instruction.operands[i].kind == OperandKind::kAddress;
    };
    const bool first = step.op == Op::kSt || step.op == Op::kStoreMatrix || step.op == Op::kRed || step.op == Op::kCopy;
    const bool second =
        step.op == Op::kLd || step.op == Op::kLoadMatrix || step.op == Op::kAtom || step.op == Op::kCopy;
    if ((first && !takes_address(0)) || (second && !takes_address(1))) {
      report(instruction, fmt::format("{} without an address is not interpreted", instruction.text()));
    }
  }

  /// The sizes of fragments: two halves a register, or one float.
  void take_matrices(Step& step, const ptx::Function& function, const ptx::Instruction& instruction) {
    for (const ptx::Operand& operand : instruction.operands) step.operands.push_back(ref_of(step, function, operand));
    std::vector<std::size_t> sizes;
    if (const auto product = matrix_product(instruction)) {
      step.elements = product->depth;
      step.type = product->factor;
      step.result = product->result;
      const std::size_t sums = product->result == Type::kF32 ? 4 : 2;
      const auto depth = static_cast<std::size_t>(product->depth);
      sizes = {sums, depth / 4, depth / 8, sums};
    } else if (const auto move = matrix_move(instruction)) {
      step.elements = move->matrices;
      step.second = move->transposed ? "trans" : "";
      step.space = Space::kShared;
      sizes = {static_cast<std::size_t>(move->matrices), 1};
      if (step.op == Op::kStoreMatrix) std::swap(sizes[0], sizes[1]);
      check_shape(step, instruction, sizes.size());
    }
    bool fits = step.operands.size() == sizes.size();
    for (std::size_t i = 0; fits && i < sizes.size(); ++i) fits = step.operands[i].elements().size() == sizes[i];
    if (!fits) report(instruction, fmt::format("{}: registers of its fragments are missing", instruction.text()));
  }

  void take_call(Step& step, const ptx::Function& function, const ptx::Instruction& instruction) {
    const ptx::Operand* lists[2] = {nullptr, nullptr};  // before the name, and behind it
    const ptx::Operand* name = nullptr;
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.kind == OperandKind::kList) {
        lists[name == nullptr ? 0 : 1] = &operand;
      } else if (name == nullptr) {
        name = &operand;
      }
    }
    const ptx::Function* callee =
        name != nullptr && name->kind == OperandKind::kFunction ? program_.module->find(name->name) : nullptr;
    if (callee == nullptr || !callee->has_body || callee->is_entry) {
      return report(instruction, fmt::format("a call of {}, whose body is not here, is not interpreted",
                                             name == nullptr || name->name.empty() ? "a pointer" : name->name));
    }
    step.callee = routine_of(callee);
    for (const ptx::Operand* list : lists) {
      Ref group;
      group.kind = RefKind::kGroup;
      if (list != nullptr) {
        for (const ptx::Operand& operand : list->parts) group.parts.push_back(ref_of(step, function, operand));
      }
      step.operands.push_back(std::move(group));
    }
    const auto fits = [&](std::size_t i, int count) {
      return step.operands[i].parts.size() == static_cast<std::size_t>(count);
    };
    if (!fits(0, callee->results) || !fits(1, callee->parameters)) {
      report(instruction, fmt::format("a call of {} does not fit its signature", callee->name));
    }
  }

  [[nodiscard]] static Bits float_bits(const ptx::Operand& operand, Type type) {
    const auto bits = static_cast<Bits>(operand.integer);
    if (operand.single) return type == Type::kF64 ? bits_of(static_cast<double>(as_float(bits))) : bits;
    return type == Type::kF64 || type == Type::kB64 ? bits : bits_of(static_cast<float>(as_double(bits)));
  }

  Ref ref_of(const Step& step, const ptx::Function& function, const ptx::Operand& operand) {
    Ref ref;
    ref.index = operand.index;
    ref.negated = operand.negated;
    ref.value = static_cast<Bits>(operand.integer);
    switch (operand.kind) {
      case OperandKind::kRegister: ref.kind = RefKind::kRegister; break;
      case OperandKind::kInteger: ref.kind = RefKind::kValue; break;
      case OperandKind::kFloat:
        ref.kind = RefKind::kValue;
        ref.value = float_bits(operand, step.type);
        break;
      case OperandKind::kSpecial: return special_ref(step, operand);
      case OperandKind::kVariable: {
        const Space space = at(function.variables, operand.index).space;
        ref.kind = space == Space::kShared  ? RefKind::kSharedVariable
                   : space == Space::kLocal ? RefKind::kLocalVariable
                                            : RefKind::kParameterVariable;
        break;
      }
      case OperandKind::kGlobal: {
        const Space space = at(program_.module->variables, operand.index).space;
        ref.kind = space == Space::kShared ? RefKind::kSharedVariable : RefKind::kGlobalVariable;
        if (space == Space::kShared) {
          ref.kind = RefKind::kValue;
          ref.value += static_cast<Bits>(shared_.at(&at(program_.module->variables, operand.index)));
        }
        break;
      }
      case OperandKind::kLabel: ref.kind = RefKind::kLabel; break;
      case OperandKind::kAddress:
      case OperandKind::kVector:
      case OperandKind::kPair:
        ref.kind = RefKind::kGroup;
        for (const ptx::Operand& part : operand.parts) ref.parts.push_back(ref_of(step, function, part));
        break;
      case OperandKind::kSink: break;
      case OperandKind::kFunction:
        if (step.targets != nullptr) break;  // of brx.idx
        [[fallthrough]];
      case OperandKind::kList:
      case OperandKind::kComponent:
        report(*step.source, fmt::format("an operand of {} is not interpreted", step.source->text()));
        break;
    }
    return ref;
  }

  Ref special_ref(const Step& step, const ptx::Operand& operand) {
    Ref ref;
    ref.kind = RefKind::kSpecial;
    const std::size_t dot = operand.name.find('.');
    const auto special = special_named(std::string_view(operand.name).substr(0, dot));
    if (!special) report(*step.source, fmt::format("%{} is not interpreted", operand.name));
    ref.special = special.value_or(Special::kClock);
    const std::string_view axis = dot == std::string::npos ? "x" : std::string_view(operand.name).substr(dot + 1);
    ref.index = axis == "y" ? 1 : axis == "z" ? 2 : 0;
    constexpr std::array<std::string_view, 5> kMasks = {"lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt",
                                                        "lanemask_ge"};
    ref.value = static_cast<Bits>(std::ranges::find(kMasks, std::string_view(operand.name)) - kMasks.begin());
    return ref;
  }

  Program program_;
  std::map<const ptx::Variable*, std::int64_t> shared_;
  std::optional<Diagnostic> mistake_;
};

}  // namespace

Expected<Program> load(const ptx::Module& module, const std::string& entry) { return Loader(module).run(entry); }

}  // namespace tangram::interpret
