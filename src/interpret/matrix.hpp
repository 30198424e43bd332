// Small matrices that the lanes of a warp hold together. Goes in: mma, ldmatrix and stmatrix of all 32 lanes. Comes
// out: fragments as the PTX ISA lays them out ("Matrix Fragments for mma.m16n8k8", "... m16n8k16", "ldmatrix",
// "stmatrix").
#pragma once

#include <optional>
#include <vector>

#include "thread.hpp"

namespace tangram::interpret {

/// D = A B + C, with A of 16 x depth, B of depth x 8, C and D of 16 x 8.
struct MatrixProduct {
  int depth = 16;                      ///< 8 or 16
  ptx::Type factor = ptx::Type::kF16;  ///< of A and B: f16 or bf16
  ptx::Type result = ptx::Type::kF32;  ///< of C and D: f32, or f16 where factors are
};
/// Nothing where it is another shape, another type, or sparse.
[[nodiscard]] std::optional<MatrixProduct> matrix_product(const ptx::Instruction& instruction);

/// Matrices of 8 rows of 16 bytes in shared memory, of ldmatrix and stmatrix.
struct MatrixMove {
  int matrices = 1;  ///< 1, 2 or 4
  bool transposed = false;
};
[[nodiscard]] std::optional<MatrixMove> matrix_move(const ptx::Instruction& instruction);

/// Of all 32 lanes; fewer are a fault. Sums are taken in doubles, by ascending k and C last, and rounded once to the
/// nearest even: the ISA leaves order and rounding open.
void multiply_matrices(const std::vector<Thread*>& lanes);
void load_matrices(const std::vector<Thread*>& lanes);
void store_matrices(const std::vector<Thread*>& lanes);

}  // namespace tangram::interpret
