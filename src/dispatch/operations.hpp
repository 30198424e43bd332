// What the streams of all devices do in one pass, and what of it must wait for what.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "needed_copies.hpp"

namespace tangram::dispatch {

struct Operation {
  enum class Kind : std::uint8_t { kUnpack, kKernel, kPack };
  Kind kind = Kind::kKernel;
  int number = 0;  ///< of the kernel, or of the copy
  int device = 0;
  int stream = 0;
  std::vector<int> waits;  ///< operations of other streams of the device, none of which follows from the others
};

/// In launch order: unpacked in front of the first reader, packed behind the writer, and at the end what later passes
/// read. Copies are numbered as they are listed.
[[nodiscard]] std::vector<Operation> operations_of(const kernels::KernelGraph& graph, const kernels::Phase& phase,
                                                   std::span<const int> on, const std::vector<NeededCopy>& copies,
                                                   const Pieces& pieces);

}  // namespace tangram::dispatch
