// How other tools name GPUs. Goes in: a name from a file. Comes out: the GPU type that it means, where it says enough.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/cluster/gpu.hpp"

namespace tangram::cluster {

/// The device a tool means: a catalogue name, or a short name that one of the tools uses ("A100-40", "GH-96", "P3").
[[nodiscard]] const GpuType* device_of(const std::string& name, std::span<const GpuType> devices);

/// For a message about a name that none of them has: "did you mean ...?" where one is near, `otherwise` where none is.
[[nodiscard]] std::string suggested_gpu(std::string_view name, std::span<const GpuType> devices, std::string otherwise);

/// A short name says neither bus nor board: "V100-16" may be the PCIe card too.
[[nodiscard]] bool may_mean(const std::string& name, const std::string& catalogue_name);

/// What a driver calls a GPU, without its vendor, and the catalogue's name for it.
struct DriverName {
  std::string_view driver;
  std::string_view catalogue;
};
[[nodiscard]] std::vector<DriverName> driver_names();

}  // namespace tangram::cluster
