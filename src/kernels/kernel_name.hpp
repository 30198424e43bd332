// Names of kernels taken apart. Goes in: a name as profilers write it. Comes out: the function, and its arguments.
#pragma once

#include <string>
#include <string_view>

namespace tangram::kernels {

struct KernelName {
  std::string function;   ///< with its namespaces, without its result: "cutlass::Kernel2"
  std::string arguments;  ///< of the template, and what follows: "<cutlass_80_...>(Params)"
};

/// Mangled names of C++ are those that begin with "_Z".
[[nodiscard]] KernelName kernel_name(std::string_view text);

/// Whether `text` is as `pattern` says, where "*" is any text.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);

}  // namespace tangram::kernels
