// Whether a kernel graph makes sense. Goes in: a graph that was read. Comes out: what a planner cannot use (errors),
// and what it should know (warnings).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

enum class Severity : std::uint8_t { kError, kWarning };

/// Codes of errors: "cycle", "missing-time" (on no GPU), "epoch-order", "copies", "unknown-position" (two GPUs, and a
/// kernel matched by order alone). Of warnings: "gpu-without-time", "unread", "pinned", "signature", "uncertain".
struct Finding {
  Severity severity = Severity::kError;
  std::string code;
  std::string about;  ///< kernel, buffer or GPU; empty: the graph
  std::string message;

  bool operator==(const Finding&) const = default;
};

/// Errors first. Findings of one code are told once for each GPU, with their number, where kernels share them.
[[nodiscard]] std::vector<Finding> check(const KernelGraph& graph);

}  // namespace tangram::kernels
