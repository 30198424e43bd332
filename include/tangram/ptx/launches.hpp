// Launches of kernels as a recorder writes them. Goes in: JSON lines. Comes out: launches, each with its place.
//
//   { "entry": "gather", "grid": [4, 1, 1], "block": [256, 1, 1],
//     "arguments": [ { "buffer": "x", "bytes": 4096, "offset": 0 },    a pointer into an allocation; offset 0 may be
//                    { "buffer": "tokens", "bytes": 16, "integers": [3, 1, 4, 1] },        left out; 32-bit integers
//                    { "value": 1000 } ] }                              that it begins with, if known; a scalar
#pragma once

#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {

struct RecordedLaunch {
  Launch launch;
  int line = 0;    ///< of the file
  int module = 0;  ///< whose entry it is, where there are several
};

/// One launch a line; empty lines do not count. All mistakes, with the lines they stand on.
[[nodiscard]] Expected<std::vector<RecordedLaunch>> read_launches(const std::string& text, const std::string& file);

}  // namespace tangram::ptx
