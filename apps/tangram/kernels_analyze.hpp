// `kernels analyze`: what kernels read and write, and which bytes launches of them touch.
#pragma once

#include <string>

#include "output.hpp"

namespace tangram::app {

struct AnalyzeOptions {
  std::string file;      ///< PTX
  std::string launches;  ///< JSON lines; empty: none
  bool explain = false;  ///< every access, and why what is not known is not
};

/// Prints the analysis, as text or as a tangram.kernel_analysis/1 document.
[[nodiscard]] ExitCode analyze_kernels(const AnalyzeOptions& options, const Context& context);

}  // namespace tangram::app
