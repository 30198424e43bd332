// What recordings of all kinds have in common. Goes in: kernels as they ran. Comes out: the graph's records of them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/gpu.hpp"
#include "tangram/kernels/kernel_graph.hpp"
#include "tangram/kernels/recording.hpp"

namespace tangram::kernels {

/// The catalogue's GPU type that the user named (`wanted`) or else that the file did (`recorded`).
[[nodiscard]] Expected<std::string> gpu_named(const std::string& wanted, const std::string& recorded,
                                              const std::string& file, std::span<const cluster::GpuType> devices);

/// A time as it was measured once.
[[nodiscard]] std::optional<KernelTime> measured(double microseconds);

/// Of a kernel of which its name alone is known, or copies and fills: the family of its signature, and why it stays
/// with its neighbours.
void identify(std::string_view name, Kernel& kernel);

[[nodiscard]] Source source_of(RecordingKind kind, const RecordingFile& file);

/// A symbol's name as tables and dumps have it: whatever is not printable ASCII becomes "?".
[[nodiscard]] std::string symbol(std::string text);

/// "#17": of recordings that know no operators.
[[nodiscard]] std::string position_by_order(std::int64_t order);
[[nodiscard]] bool is_by_order(std::string_view position);

}  // namespace tangram::kernels
