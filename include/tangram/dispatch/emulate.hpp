// Runs a schedule on emulated devices. Goes in: the kernel graph, the schedule, perhaps PTX. Comes out: whether every
// kernel computes what it computes on one device, whatever the timing; or which bytes it has wrong, and why. Shares
// nothing with the planner of placements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tangram/base/expected.hpp"
#include "tangram/dispatch/code.hpp"
#include "tangram/dispatch/schedule.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::dispatch {

enum class Fault : std::uint8_t {
  kNotCopied,    ///< another device wrote it, and no copy brings it
  kStale,        ///< the same of a KV cache, of which the device has an older version
  kTooEarly,     ///< a kernel does not wait for what it reads
  kOverwritten,  ///< what a kernel reads, or what is left at the end, is overwritten: somebody does not wait
  kDeadlock,     ///< segments wait for each other
  kUnlisted,     ///< PTX touches bytes that the graph does not list
  kOtherBytes,   ///< PTX writes other bytes than on one device, though it was given the same
};
[[nodiscard]] std::string_view to_string(Fault fault);  ///< "not copied", ...

struct Finding {
  Fault fault = Fault::kNotCopied;
  std::string kernel;  ///< that reads; of what is left at the end, that wrote it
  std::string other;   ///< the kernel that wrote, or overwrote, what is there; empty: it is as it was at the beginning
  std::string buffer;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::string device;       ///< of the kernel
  std::string from_device;  ///< of what it should have read
  int timing = 0;           ///< from 1; 0: it takes none to see it
  std::string message;      ///< one sentence
};

struct EmulationOptions {
  std::uint64_t seed = 1;
  int timings = 50;
  int passes = 2;               ///< of the last phase, one after the other, on the same buffers
  const Code* code = nullptr;   ///< none: kernels are functions of which nothing is known but what they touch
  bool by_bytes_alone = false;  ///< with PTX: who wrote what a kernel reads is not looked at
};

struct Emulation {
  int timings = 0;                  ///< that were run
  std::int64_t kernels = 0;         ///< runs of kernels, in all timings
  std::int64_t bytes_compared = 0;  ///< of PTX
  std::optional<Finding> finding;   ///< the first one
};

/// Each device has memory of its own: what its kernels touch holds the same at the beginning everywhere, the rest is
/// filled with 0xff bytes. Passes of all phases run one after the other, as micro-batches do that share a place in
/// flight. A timing is an order of everything that the streams do, at random among those that waits and copies allow:
/// now and then one stream is far ahead of the others. Without PTX a byte holds which run of a kernel wrote it; a
/// kernel that reads what it reads on one device is taken to write what it writes there.
///
/// `graph` has its repeats written out, and the schedule is one that check_against() accepts. Fails where PTX does what
/// the interpreter does not know.
[[nodiscard]] Expected<Emulation> emulate(const kernels::KernelGraph& graph, const Schedule& schedule,
                                          const EmulationOptions& options);

/// Kernels that are in one of the two alone, or in another phase; copies of bytes that there are not. `file`: of the
/// schedule.
[[nodiscard]] Expected<void> check_against(const kernels::KernelGraph& graph, const Schedule& schedule,
                                           const std::string& file);

}  // namespace tangram::dispatch
