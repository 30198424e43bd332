// The log of a run of Triton kernels, as tritonparse records it (github.com/meta-pytorch/tritonparse; its raw logs and
// its parsed ones). Goes in: JSON lines, one for each kernel that was compiled, with its PTX, and one for each launch.
// Comes out: modules, and launches of their entries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/ptx/launches.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

struct TritonLog {
  std::vector<Module> modules;           ///< one for each kernel that was compiled
  std::vector<RecordedLaunch> launches;  ///< of these modules, in order
};

/// Whether the first line is an event of such a log.
[[nodiscard]] bool is_triton_log(std::string_view text);

/// Tensors are buffers called by the address of their allocation: those that overlap are one. Arguments that the kernel
/// was specialised for are none of its PTX; pointers behind the last one are Triton's scratch memory. Events of other
/// kinds are left out. All mistakes, with the lines they stand on: launches of kernels that the log does not compile,
/// arguments other than tensors and numbers, clusters of blocks.
[[nodiscard]] Expected<TritonLog> read_triton_log(const std::string& text, const std::string& file);

}  // namespace tangram::ptx
