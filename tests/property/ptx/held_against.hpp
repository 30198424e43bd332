// The analysis held against the interpreter. Goes in: a kernel's text as each of both is to see it, and a launch. Comes
// out: what of the bytes that were touched the analysis does not know, or claims beyond them.
#pragma once

#include <functional>
#include <string>

#include "random_kernel.hpp"

namespace tangram::testing {

struct Verdict {
  bool ran = false;        ///< the interpreter came to the end, within the buffers
  bool exact = false;      ///< the analysis says that all its ranges are exact
  std::string difference;  ///< empty: everything is as it should be
};

/// What may be done to the answer before it is held against what happened.
using Change = std::function<void(ptx::LaunchRanges&)>;

/// `seen` is the text that the analysis sees in the place of the kernel's own.
[[nodiscard]] Verdict held_against(const RandomKernel& kernel, const std::string& seen, const Change& change = {});

}  // namespace tangram::testing
