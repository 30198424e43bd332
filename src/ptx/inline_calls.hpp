// Calls of functions of the module, put where they are called. Goes in: an entry. Comes out: one body without them.
#pragma once

#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

/// Calls that stay: through pointers, of functions without a body, recursive ones, and those for which the body would
/// grow too long.
[[nodiscard]] Function inline_calls(const Module& module, const Function& entry);

/// What a call names: its results, its function and its arguments; null where it has none.
struct CallParts {
  const Operand* results = nullptr;
  const Operand* callee = nullptr;  ///< a register where the call is indirect
  const Operand* arguments = nullptr;
};
[[nodiscard]] CallParts parts_of_call(const Instruction& call);

}  // namespace tangram::ptx
