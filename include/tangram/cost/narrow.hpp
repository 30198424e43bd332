// Values in 8 and 4 bits beside those of 2 bytes, as Transformer Engine casts and keeps them (docs/features/
// low_precision_training). Goes in: the format that products of linear layers run in, and its recipe. Comes out: bytes
// of copies, and how often what is cast is read.
#pragma once

#include "tangram/cluster/gpu.hpp"
#include "tangram/model/model.hpp"

namespace tangram::cost {

/// Products need what they read along two dimensions: by rows and, for the gradients of weights and inputs, by columns.
/// Blackwell reads fp8 of one scale a tensor either way from one copy; else there are two.
struct NarrowCopies {
  double one = 0;             ///< bytes of a value and its share of scales in one copy; 0: nothing is cast
  double count = 0;           ///< copies of a tensor
  double normed_reads = 0;    ///< times that an input is read to be cast which a norm gives
  double input_reads = 0;     ///< the same of other inputs
  double gradient_reads = 0;  ///< of gradients of outputs, and of weights
  double gathered = 1;  ///< copies of gradients of outputs that sequence parallelism gathers: those along the other
                        ///< dimension have scales of their own, but for one scale a tensor
  double held = 0;      ///< copies of a weight that stay; backward makes the other where there is one more

  [[nodiscard]] double bytes() const { return one * count; }
  [[nodiscard]] double held_bytes() const { return one * held; }
  [[nodiscard]] bool transposes() const { return held < count; }
};

/// Of what the job's products on this GPU read where they run in `format`.
[[nodiscard]] NarrowCopies narrow_copies(const cluster::GpuType& device, DType format, const model::Job& job);

/// Bytes of a value in one copy, scales included: fp8 or fp4; 2 in other formats.
[[nodiscard]] double narrow_bytes(DType format, model::Fp8Recipe recipe);

/// Bytes of a parameter that a GPU holds and gathers, at least, on whatever GPUs.
[[nodiscard]] double least_parameter_bytes(const model::Job& job);

}  // namespace tangram::cost
