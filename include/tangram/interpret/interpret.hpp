// Runs PTX without a GPU. Goes in: a module, a launch, the memory of a device. Comes out: what the kernel computes, and
// the bytes that it touches: what the analysis of `ptx` is held against.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/interpret/memory.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::interpret {

struct GridLaunch {
  std::string entry;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  /// Bits of each parameter, low bytes first; as many as the parameter has, or fewer, then zeros follow.
  std::vector<std::vector<std::uint8_t>> arguments;
  std::int64_t shared_bytes = 0;          ///< beside what the kernel declares
  std::int64_t most_steps = 100'000'000;  ///< of all threads; a kernel that takes more is given up
};

/// The bits of an argument.
template <class Value>
[[nodiscard]] std::vector<std::uint8_t> argument(const Value& value) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
  return {first, first + sizeof(Value)};
}

/// Blocks one after the other, the threads of a block in turn up to each barrier. Rounding is to nearest even;
/// approximate functions are those of the C++ library, rounded. Fails by name on what it does not know, and by place
/// where a thread reaches outside of all allocations or threads wait for each other.
[[nodiscard]] Expected<void> execute(const ptx::Module& module, const GridLaunch& launch, Memory& memory);

}  // namespace tangram::interpret
