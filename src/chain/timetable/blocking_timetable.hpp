// When the passes of a chain end where stages stop for their transfers (Program::blocking_transfers). Goes in: a chain.
// Comes out: when each stage has run its last backward pass, from which
// on it synchronises its gradients, beside the last transfer.
//
// A stage s with w = min(M, S-1-s) forward passes of warm-up meets each neighbour once for everything that is due
// between them, and both go on when the later one has come and the transfer is over. Over the boundary behind it,
// meeting r hands over the activation r while there are any and, from r = w on, brings the gradient r - w:
//
//   receive 0, then F(r), meeting r behind, B(r - w) once r >= w, meeting in front (the gradient there, the next
//   activation back), and again
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// [stage] ns. O(S M).
[[nodiscard]] std::vector<std::int64_t> blocking_ends(const Program& program, const Chain& chain);

}  // namespace tangram::chain
