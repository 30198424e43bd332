// 1F1B whose transfers run beside the passes, pass by pass, zero bubble's weight gradients included. Goes in: a chain.
// Comes out: when its last stage has synchronised. Once passes repeat themselves, what is left of them is skipped.
#pragma once

#include <cstdint>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// Where it is not below `cutoff`, anything from there to the truth. ns.
[[nodiscard]] std::int64_t overlapped_end(const Program& program, const Chain& chain, std::int64_t cutoff);

}  // namespace tangram::chain
