// One device runs all kernels in launch order: what each reads, what each leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device_memory.hpp"
#include "pieces.hpp"
#include "tangram/dispatch/emulate.hpp"

namespace tangram::dispatch {

/// A run of a kernel, numbered in launch order over all passes. What a piece holds is the run that wrote it.
using RunNumber = int;
inline constexpr RunNumber kFirst = -1;    ///< as at the beginning
inline constexpr RunNumber kNothing = -2;  ///< never there
inline constexpr RunNumber kUnasked =
    -3;  ///< left by another buffer of the storage: a kernel that reads it reads garbage

struct Pass {
  int phase = 0;
  RunNumber first = 0;  ///< run of the phase's first kernel
};

/// Of one run: what the pieces that it reads hold, and the bytes that it writes, range by range.
struct ReferenceRun {
  int kernel = 0;
  std::vector<std::vector<RunNumber>> reads;
  std::vector<std::vector<std::uint8_t>> writes;  ///< with PTX
};

struct Reference {
  std::vector<Pass> passes;
  std::vector<ReferenceRun> runs;
  std::vector<RunNumber> end;  ///< by piece
  std::optional<Finding> unlisted;
};

/// `contents`: with PTX, of all storages at the beginning.
[[nodiscard]] Expected<Reference> run_reference(const kernels::KernelGraph& graph, const Pieces& pieces,
                                                const std::vector<Touches>& touches, const Contents& contents,
                                                const EmulationOptions& options);

}  // namespace tangram::dispatch
