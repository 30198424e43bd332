// Which sets of shapes fit into equal bins: parts into the members of a class, members into its islands. Goes in: the
// size of a bin and the sizes of items. Comes out: linear inequalities, so that a search need not know where each item
// lies: it adds up weights as it adds up units.
//
// Items n_s fit into m bins if and only if n is at most a sum of m patterns (what one bin can hold). The facets of the
// fractional relaxation, w n <= m for all w >= 0 with w p <= 1 for every pattern p, are necessary. They are sufficient
// where the integer round-up property holds: bins of up to 15 units (Kartak, Ripatti, Scheithauer and Kurz, "Minimal
// proper non-IRUP instances of the one-dimensional cutting stock problem", 2015), and sizes of which each divides the
// next, whatever the bin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tangram::compose {

/// Over all items of m bins, the sum of weight[size] is at most m * capacity.
struct PackingInequality {
  std::vector<std::int64_t> weight;  ///< [size], 0 .. bin
  std::int64_t capacity = 1;
};

/// Bins of up to this size take items of any sizes; larger ones sizes of which each divides the next, and whole bins.
inline constexpr int kAnySizes = 8;

/// What must hold beside the sum of sizes being at most m * bin; empty: nothing. `sizes` ascend, none above `bin`. A
/// size of 1 weighs nothing: where the sum allows, it fits. Exponential in `bin` up to kAnySizes (there 22 patterns),
/// linear in `sizes` beyond; what was worked out is remembered. Thread-safe.
[[nodiscard]] std::vector<PackingInequality> packing_inequalities(int bin, std::span<const int> sizes);

}  // namespace tangram::compose
