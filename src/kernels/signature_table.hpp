// The table of signatures. Goes in: nothing. Comes out: rows, each with the kernels that it is of and where that is
// known from.
#pragma once

#include <span>
#include <string_view>

#include "tangram/kernels/signatures.hpp"

namespace tangram::kernels {

struct SignatureRow {
  /// What the function's name is, or ends with behind "::"; "*" is any text.
  std::string_view function;
  std::string_view arguments;  ///< of the template and what follows; empty: whatever they are
  const Signature* signature;
};

[[nodiscard]] std::span<const SignatureRow> signature_table();

}  // namespace tangram::kernels
