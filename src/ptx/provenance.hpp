// Which pointers each access may go through, whatever the order of instructions. Goes in: a body without calls of known
// functions. Comes out: its accesses with their bases, and what pins the kernel.
#pragma once

#include <vector>

#include "tangram/ptx/analysis.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

struct Provenance {
  std::vector<Access> accesses;
  std::vector<Reason> pinned;
};

/// Flow-insensitive: every register holds the union of what its definitions may give, to a fixed point.
[[nodiscard]] Provenance provenance_of(const Module& module, const Function& body);

}  // namespace tangram::ptx
