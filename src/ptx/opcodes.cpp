// Opcodes of PTX ISA 8.8, chapter "Instruction Set".
#include "opcodes.hpp"

#include <algorithm>
#include <array>

#include "declarations.hpp"

namespace tangram::ptx {
namespace {

struct OpcodeRow {
  std::string_view name;
  OpcodeClass what;
};

using enum OpcodeClass;

constexpr std::array kOpcodes = {
    OpcodeRow{"abs", kScale},
    OpcodeRow{"activemask", kMatrix},
    OpcodeRow{"add", kSum},
    OpcodeRow{"addc", kBits},
    OpcodeRow{"alloca", kMove},
    OpcodeRow{"and", kBits},
    OpcodeRow{"applypriority", kNone},
    OpcodeRow{"atom", kAtomic},
    OpcodeRow{"bar", kNone},
    OpcodeRow{"barrier", kNone},
    OpcodeRow{"bfe", kBits},
    OpcodeRow{"bfi", kBits},
    OpcodeRow{"bfind", kScale},
    OpcodeRow{"bmsk", kScale},
    OpcodeRow{"bra", kBranch},
    OpcodeRow{"brev", kScale},
    OpcodeRow{"brkpt", kNone},
    OpcodeRow{"brx", kIndexedBranch},
    OpcodeRow{"call", kCall},
    OpcodeRow{"clusterlaunchcontrol", kNone},
    OpcodeRow{"clz", kScale},
    OpcodeRow{"cnot", kScale},
    OpcodeRow{"copysign", kScale},
    OpcodeRow{"cos", kScale},
    OpcodeRow{"cp", kAsyncCopy},
    OpcodeRow{"createpolicy", kScale},
    OpcodeRow{"cvt", kMove},
    OpcodeRow{"cvta", kMove},
    OpcodeRow{"discard", kDiscard},
    OpcodeRow{"div", kScale},
    OpcodeRow{"dp2a", kScale},
    OpcodeRow{"dp4a", kScale},
    OpcodeRow{"elect", kMatrix},
    OpcodeRow{"ex2", kScale},
    OpcodeRow{"exit", kExit},
    OpcodeRow{"fence", kNone},
    OpcodeRow{"fma", kScale},
    OpcodeRow{"fns", kScale},
    OpcodeRow{"getctarank", kScale},
    OpcodeRow{"griddepcontrol", kNone},
    OpcodeRow{"isspacep", kScale},
    OpcodeRow{"istypep", kScale},
    OpcodeRow{"ld", kLoad},
    OpcodeRow{"ldmatrix", kMatrix},
    OpcodeRow{"ldu", kLoad},
    OpcodeRow{"lg2", kScale},
    OpcodeRow{"lop3", kBits},
    OpcodeRow{"mad", kSumOfProduct},
    OpcodeRow{"mad24", kSumOfProduct},
    OpcodeRow{"madc", kSumOfProduct},
    OpcodeRow{"mapa", kMove},
    OpcodeRow{"match", kMatrix},
    OpcodeRow{"max", kMove},
    OpcodeRow{"mbarrier", kNone},
    OpcodeRow{"membar", kNone},
    OpcodeRow{"min", kMove},
    OpcodeRow{"mma", kMatrix},
    OpcodeRow{"mov", kMove},
    OpcodeRow{"movmatrix", kMatrix},
    OpcodeRow{"mul", kScale},
    OpcodeRow{"mul24", kScale},
    OpcodeRow{"nanosleep", kNone},
    OpcodeRow{"neg", kScale},
    OpcodeRow{"not", kScale},
    OpcodeRow{"or", kBits},
    OpcodeRow{"pmevent", kNone},
    OpcodeRow{"popc", kScale},
    OpcodeRow{"prefetch", kNone},
    OpcodeRow{"prefetchu", kNone},
    OpcodeRow{"prmt", kBits},
    OpcodeRow{"rcp", kScale},
    OpcodeRow{"red", kReduction},
    OpcodeRow{"redux", kMatrix},
    OpcodeRow{"rem", kScale},
    OpcodeRow{"ret", kReturn},
    OpcodeRow{"rsqrt", kScale},
    OpcodeRow{"sad", kScale},
    OpcodeRow{"selp", kMove},
    OpcodeRow{"set", kScale},
    OpcodeRow{"setmaxnreg", kNone},
    OpcodeRow{"setp", kScale},
    OpcodeRow{"shf", kBits},
    OpcodeRow{"shfl", kBits},
    OpcodeRow{"shl", kScale},
    OpcodeRow{"shr", kBits},
    OpcodeRow{"sin", kScale},
    OpcodeRow{"slct", kMove},
    OpcodeRow{"sqrt", kScale},
    OpcodeRow{"st", kStore},
    OpcodeRow{"stackrestore", kNone},
    OpcodeRow{"stacksave", kScale},
    OpcodeRow{"stmatrix", kNone},
    OpcodeRow{"sub", kSum},
    OpcodeRow{"subc", kBits},
    OpcodeRow{"suld", kSurface},
    OpcodeRow{"suq", kScale},
    OpcodeRow{"sured", kSurface},
    OpcodeRow{"sust", kSurface},
    OpcodeRow{"szext", kScale},
    OpcodeRow{"tanh", kScale},
    OpcodeRow{"tcgen05", kNone},
    OpcodeRow{"tensormap", kUnknown},
    OpcodeRow{"testp", kScale},
    OpcodeRow{"tex", kTexture},
    OpcodeRow{"tld4", kTexture},
    OpcodeRow{"trap", kTrap},
    OpcodeRow{"txq", kScale},
    OpcodeRow{"vote", kMatrix},
    OpcodeRow{"wgmma", kNone},
    OpcodeRow{"wmma", kMatrix},
    OpcodeRow{"xor", kBits},
};

/// Opcodes whose modifiers decide.
OpcodeClass refined(const Instruction& instruction, OpcodeClass what) {
  const std::string& opcode = instruction.opcode;
  if (opcode == "cp") {
    const bool copies = !instruction.has("commit_group") && !instruction.has("wait_group") &&
                        !instruction.has("wait_all") && !instruction.has("mbarrier") && !instruction.has("noinc");
    return copies && !instruction.has("prefetch") ? kAsyncCopy : kNone;
  }
  if (opcode == "wmma" && instruction.has("load")) return kLoad;
  if (opcode == "wmma" && instruction.has("store")) return kStore;
  if (opcode == "mbarrier") {
    const bool has_result = instruction.has("arrive") || instruction.has("test_wait") || instruction.has("try_wait") ||
                            instruction.has("arrive_drop") || instruction.has("pending_count");
    return has_result && !instruction.operands.empty() && instruction.operands[0].kind != OperandKind::kAddress
               ? kMatrix
               : kNone;
  }
  if (opcode == "tcgen05" && instruction.has("ld")) return kMatrix;
  if ((opcode == "bar" || opcode == "barrier") && instruction.has("red")) return kMatrix;
  return what;
}

std::int64_t integer_operand(const Instruction& instruction, std::size_t number) {
  if (number >= instruction.operands.size()) return 0;
  const Operand& operand = instruction.operands[number];
  return operand.kind == OperandKind::kInteger ? operand.integer : 0;
}

const Operand* address_operand(const Instruction& instruction, std::size_t number) {
  std::size_t seen = 0;
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == OperandKind::kAddress && seen++ == number) return &operand;
  }
  return nullptr;
}

/// cp.async.bulk.shared::cluster.global [to], [from], bytes; cp.async.ca.shared.global [to], [from], bytes.
std::vector<MemoryUse> copy_uses(const Instruction& instruction) {
  std::vector<Space> spaces;
  for (const std::string& modifier : instruction.modifiers) {
    const auto space = space_named(modifier);
    if (space == Space::kGlobal || space == Space::kShared) spaces.push_back(*space);
  }
  const bool is_tensor = instruction.has("tensor");
  const bool reduces = instruction.has("reduce");
  const std::int64_t width = is_tensor ? 0 : integer_operand(instruction, 2);
  std::vector<MemoryUse> uses;
  for (std::size_t side = 0; side < 2; ++side) {
    const Operand* address = address_operand(instruction, side);
    if (address == nullptr || (side < spaces.size() && spaces[side] == Space::kShared)) continue;
    const Effect effect = side == 1 ? Effect::kRead : reduces ? Effect::kUpdate : Effect::kWrite;
    uses.push_back({address, effect, side < spaces.size() ? spaces[side] : Space::kGeneric, width, is_tensor,
                    instruction.operands.size() > 3});
  }
  return uses;
}

}  // namespace

OpcodeClass class_of(const Instruction& instruction) {
  const auto* row = std::ranges::find(kOpcodes, std::string_view(instruction.opcode), &OpcodeRow::name);
  return row == kOpcodes.end() ? kUnknown : refined(instruction, row->what);
}

int results_of(OpcodeClass what, const Instruction& instruction) {
  switch (what) {
    case kStore:
    case kReduction:
    case kAsyncCopy:
    case kDiscard:
    case kBranch:
    case kIndexedBranch:
    case kCall:
    case kReturn:
    case kExit:
    case kTrap:
    case kNone: return 0;
    case kSurface: return instruction.opcode == "suld" ? 1 : 0;
    default: return instruction.operands.empty() || instruction.operands[0].kind == OperandKind::kAddress ? 0 : 1;
  }
}

Space space_of(const Instruction& instruction) {
  for (const std::string& modifier : instruction.modifiers) {
    const auto space = space_named(modifier);
    if (space && *space != Space::kRegister) return *space;
  }
  return Space::kGeneric;
}

std::int64_t access_width(const Instruction& instruction) {
  const auto type = instruction.type();
  if (!type || instruction.opcode == "wmma") return 0;
  int elements = instruction.vector_length();
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == OperandKind::kVector) elements = std::max(elements, static_cast<int>(operand.parts.size()));
  }
  return std::int64_t{width_of(*type)} * elements;
}

std::vector<MemoryUse> memory_uses(const Instruction& instruction) {
  const OpcodeClass what = class_of(instruction);
  if (what == kAsyncCopy) return copy_uses(instruction);
  const Operand* address = address_operand(instruction, 0);
  if (address == nullptr) return {};
  MemoryUse use{address, Effect::kRead, space_of(instruction), access_width(instruction)};
  switch (what) {
    case kLoad: break;
    case kStore: use.effect = Effect::kWrite; break;
    case kAtomic:
    case kReduction: use.effect = Effect::kUpdate; break;
    case kDiscard:
      use.effect = Effect::kWrite;
      use.width = integer_operand(instruction, 1);
      break;
    default: return {};
  }
  if (use.space != Space::kGlobal && use.space != Space::kGeneric) return {};
  return {use};
}

}  // namespace tangram::ptx
