#include "tangram/cost/narrow.hpp"

#include <algorithm>

namespace tangram::cost {
namespace {

using model::Fp8Recipe;

bool has_scale_of_tensor(Fp8Recipe recipe) { return recipe == Fp8Recipe::kDelayed || recipe == Fp8Recipe::kTensorwise; }

/// NVFP4: the greatest value of a tensor is needed before its blocks are scaled, and once more of what the Hadamard
/// transform makes of it.
constexpr NarrowCopies kFour{.normed_reads = 2, .input_reads = 2, .gradient_reads = 2};
/// The scale is of iterations before: the norm casts what it gives.
constexpr NarrowCopies kDelayed{.normed_reads = 0, .input_reads = 1, .gradient_reads = 1};
/// The greatest value of the tensor itself, which the norm finds for what it gives.
constexpr NarrowCopies kTensorwise{.normed_reads = 1, .input_reads = 2, .gradient_reads = 2};
/// Scales of blocks: one pass of its own, as norms write two bytes unless cuDNN's are asked for.
constexpr NarrowCopies kBlocks{.normed_reads = 1, .input_reads = 1, .gradient_reads = 1};

NarrowCopies reads_of(DType format, Fp8Recipe recipe) {
  if (format == DType::kFp4) return kFour;
  switch (recipe) {
    case Fp8Recipe::kDelayed: return kDelayed;
    case Fp8Recipe::kTensorwise: return kTensorwise;
    case Fp8Recipe::kBlockwise:
    case Fp8Recipe::kMxfp8: break;
  }
  return kBlocks;
}

}  // namespace

double narrow_bytes(DType format, Fp8Recipe recipe) {
  if (format == DType::kFp4) return 0.5 + 1.0 / 16;  // E4M3 scales of 16 values
  if (format != DType::kFp8) return 2;
  switch (recipe) {
    case Fp8Recipe::kDelayed:
    case Fp8Recipe::kTensorwise: break;
    case Fp8Recipe::kBlockwise: return 1 + 4.0 / 128;  // fp32 scales of 128 values
    case Fp8Recipe::kMxfp8: return 1 + 1.0 / 32;       // E8M0 scales of 32 values
  }
  return 1;
}

NarrowCopies narrow_copies(const cluster::GpuType& device, DType format, const model::Job& job) {
  if (!is_narrow(format)) return {};
  const Fp8Recipe recipe = job.fp8_recipe;
  const bool reads_both_ways =
      device.architecture == "blackwell" && format == DType::kFp8 && has_scale_of_tensor(recipe);
  NarrowCopies copies = reads_of(format, recipe);
  copies.one = narrow_bytes(format, recipe);
  copies.count = reads_both_ways ? 1 : 2;
  copies.held = job.transpose_cache ? copies.count : 1;
  copies.gathered = format == DType::kFp8 && has_scale_of_tensor(recipe) ? 1 : 2;
  return copies;
}

double least_parameter_bytes(const model::Job& job) {
  const auto wide = static_cast<double>(job.parameter_bytes);
  return job.narrow_parameters ? std::min(wide, narrow_bytes(job.precision, job.fp8_recipe)) : wide;
}

}  // namespace tangram::cost
