// The bytes that one instruction touches. Goes in: an affine offset and which threads compute it. Comes out: sets of
// bytes, and why it is not certain that every byte of them is touched.
#pragma once

#include <vector>

#include "domain.hpp"
#include "symbols.hpp"

namespace tangram::ptx {

struct Footprint {
  std::vector<ByteSet> bytes;   ///< empty: nothing is touched
  bool bounded = true;          ///< false: the offset may be anything, and `bytes` says nothing
  std::vector<Reason> reasons;  ///< why not exact; none where every byte is touched
};

/// `width` bytes at each value of `offset` that the threads of the domain compute.
[[nodiscard]] Footprint footprint_of(const Form& offset, std::int64_t width, const Domain& domain,
                                     const Symbols& symbols);

/// Pieces that follow each other become one; repeats are by ascending stride.
[[nodiscard]] ByteSet normalized(std::int64_t first, std::int64_t run, std::vector<Repeat> repeats);

}  // namespace tangram::ptx
