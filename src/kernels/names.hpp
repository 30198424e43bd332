// What the enumerations of a kernel graph are called in files, in the order of their values.
#pragma once

#include <array>
#include <string_view>

#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

inline constexpr std::array<std::string_view, kBufferKindCount> kBufferKindNames{
    "weight", "kv", "activation", "input", "output", "workspace", "unknown"};
inline constexpr std::array<std::string_view, kGrowthCount> kGrowthNames{"request", "token", "step"};
inline constexpr std::array<std::string_view, kEvidenceCount> kEvidenceNames{"model", "trace", "ptx", "signature",
                                                                             "conservative"};
inline constexpr std::array<std::string_view, kPinCount> kPinNames{"none", "collective", "unknown_pointer",
                                                                   "host", "format",     "unknown_operands"};
inline constexpr std::array<std::string_view, kPartCount> kPartNames{"other", "embedding", "attention", "feed_forward",
                                                                     "head"};
inline constexpr std::array<std::string_view, kTimeSourceCount> kTimeSourceNames{"measured", "interpolated",
                                                                                 "roofline"};

}  // namespace tangram::kernels
