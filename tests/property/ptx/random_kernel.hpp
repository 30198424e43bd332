// Random kernels as PTX text, with launches. Goes in: random numbers. Comes out: kernels of affine loops, guards,
// selections of pointers and gathers, whose accesses stay within their buffers.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tangram/interpret/interpret.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::testing {

inline constexpr int kBuffers = 3;
inline constexpr std::int64_t kBufferBytes = 12288;
inline constexpr std::int64_t kPointerOffset = 2048;  ///< where in its buffer a pointer starts

struct RandomKernel {
  std::string text;
  ptx::Launch launch;
  bool is_affine = true;  ///< no data, no selection among pointers, no minimum: all of it follows from indices
};

[[nodiscard]] RandomKernel random_kernel(std::mt19937_64& random);

}  // namespace tangram::testing
