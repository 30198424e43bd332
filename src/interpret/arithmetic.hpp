// What instructions compute from their operands alone. Goes in: a step and the bits of its operands. Comes out: bits.
#pragma once

#include <span>

#include "program.hpp"

namespace tangram::interpret {

/// Of everything that neither branches nor touches memory nor other threads.
[[nodiscard]] Bits compute(const Step& step, std::span<const Bits> operands);

[[nodiscard]] Bits compute_float(const Step& step, ptx::Type type, std::span<const Bits> operands);
[[nodiscard]] Bits convert(const Step& step, Bits bits);
/// setp and set.
[[nodiscard]] bool compare(const Step& step, Bits a, Bits b);
/// What atomic operations leave in memory; `more` is the third operand of compare-and-swap.
[[nodiscard]] Bits updated(const Step& step, Bits old, Bits operand, Bits more);

/// Without the sign's bits below the smallest normal number, where the step flushes them.
[[nodiscard]] Bits flushed(const Step& step, Bits bits, ptx::Type type);

}  // namespace tangram::interpret
