// The opcodes that the interpreter knows.
#pragma once

#include <optional>
#include <string_view>

#include "program.hpp"

namespace tangram::interpret {

struct KnownOp {
  Op op;
  std::size_t operands;  ///< results among them, that it cannot do without
};

/// kNop for those without an effect on what is computed: fences, prefetches, waits for copies that are done at once.
[[nodiscard]] std::optional<KnownOp> op_named(const ptx::Instruction& instruction);

/// Whether a modifier says what is done: the relation of a comparison, the operation of an atomic.
[[nodiscard]] bool is_choice(std::string_view modifier);

/// Whether a modifier means something to the interpreter, or nothing at all.
[[nodiscard]] bool is_known_modifier(std::string_view modifier);

}  // namespace tangram::interpret
