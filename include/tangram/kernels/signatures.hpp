// What kernels of libraries do to memory. Goes in: the name of a kernel without PTX (cuBLAS, cuDNN, FlashAttention,
// CUB, NCCL and alike ship machine code alone). Comes out: its signature, or what a launch of it may touch.
//
// A signature speaks of operands: the memory that the kernel was given, in the operator's order, inputs first. Which
// bytes of it are touched is not known, and what a signature does not name may be read and written. A name that no row
// of the table has is of an unknown kernel.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "tangram/base/expected.hpp"
#include "tangram/kernels/kernel_graph.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::kernels {

struct Operand {
  std::string_view name;
  ptx::Effect effect = ptx::Effect::kRead;
};

struct Signature {
  std::string_view family;            ///< "gemm", "attention", ...
  std::span<const Operand> operands;  ///< the first ones; all others may be read and written
  int least = 1;                      ///< operands that every kernel of the family has
  /// Tensors that it makes at most, where it writes nothing else but workspace of its own; 0: it may write its inputs.
  int results = 0;
  Pin pinned = Pin::kNone;  ///< why it must run where its neighbours run, whatever is known of its operands
};

/// Null where the kernel is of no known family. Names as profilers have them: plain, mangled, or with the template's
/// and the function's arguments behind.
[[nodiscard]] const Signature* signature_of(std::string_view kernel_name);

/// What a launch touches.
struct LaunchTouch {
  ptx::LaunchRanges ranges;
  Evidence evidence = Evidence::kPtx;
  const Signature* signature = nullptr;  ///< null: the PTX says it, or nothing does
  Pin pinned = Pin::kNone;
};

/// By the PTX of the entry where the module has it, else by its signature, else all that the launch names, pinned.
/// Fails where the launch does not fit the entry or lacks operands, and where an entry of the module is spelled alike.
[[nodiscard]] Expected<LaunchTouch> touch_of(const ptx::Module& module, const ptx::Launch& launch);

}  // namespace tangram::kernels
