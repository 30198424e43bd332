// Numbers that no job reaches. Above them a file is wrong, and reading on would fill the memory.
#pragma once

#include <cstdint>

namespace tangram::importing {

inline constexpr std::int64_t kMostDegree = 4096;  ///< products of four fit into 64 bits
inline constexpr std::int64_t kMostGpus = 1'000'000;
inline constexpr std::int64_t kMostLayers = 100'000;

}  // namespace tangram::importing
