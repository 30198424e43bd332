// What opcodes do. Goes in: an instruction. Comes out: its class of effects, its results and its address.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tangram/ptx/analysis.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

enum class OpcodeClass : std::uint8_t {
  kMove,          ///< its results are its operands: mov, cvta, selp
  kSum,           ///< an address among its operands stays one: add, sub
  kBits,          ///< a pointer's bits, rearranged: it may still be one
  kScale,         ///< what comes out is no pointer: mul, shl, floating point, comparisons
  kSumOfProduct,  ///< mad: a product and an address
  kLoad,
  kStore,
  kAtomic,
  kReduction,
  kAsyncCopy,  ///< cp.async and bulk copies
  kDiscard,    ///< counts as a write
  kTexture,
  kSurface,
  kBranch,
  kIndexedBranch,
  kCall,
  kReturn,  ///< of a function; the thread ends in an entry
  kExit,
  kTrap,
  kNone,    ///< no result, no effect on global memory
  kMatrix,  ///< results from tensor cores or other threads: data
  kUnknown
};

/// By opcode and modifiers; kUnknown where the table lacks it.
[[nodiscard]] OpcodeClass class_of(const Instruction& instruction);

/// How many of its first operands are results: 0 or 1 (which may be a vector or a pair).
[[nodiscard]] int results_of(OpcodeClass what, const Instruction& instruction);

/// How an instruction touches memory through one operand.
struct MemoryUse {
  const Operand* address = nullptr;
  Effect effect = Effect::kRead;
  Space space = Space::kGeneric;
  std::int64_t width = 0;   ///< bytes; 0: a register, or a tensor map, says how many
  bool is_tensor = false;   ///< the address is that of a tensor map
  bool is_partial = false;  ///< perhaps fewer bytes, by a register
};

/// Accesses of global or generic memory that the instruction makes: none, one, or two.
[[nodiscard]] std::vector<MemoryUse> memory_uses(const Instruction& instruction);

/// The state space that modifiers name; kGeneric where they name none.
[[nodiscard]] Space space_of(const Instruction& instruction);

/// Bytes that ld, st, atom and red touch at once.
[[nodiscard]] std::int64_t access_width(const Instruction& instruction);

}  // namespace tangram::ptx
