#include "tangram/cluster/gpu_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tangram/base/spelling.hpp"

namespace tangram::cluster {
namespace {

struct ShortName {
  std::string_view name;
  std::string_view family;  ///< every catalogue name that begins with it may be meant
  std::string_view usual;   ///< and this one is, where nothing else is said
};

// Sailor's and its baselines' profile folders (its cluster file gives "RTX-2080" 11 GiB: the Ti), and AWS instances as
// AMP names them: P3.8xlarge has V100-SXM2 of 16 GB, G4dn.12xlarge T4.
constexpr std::array kShortNames = {
    ShortName{"A100-40", "A100-40GB", "A100-40GB-SXM"},
    ShortName{"A100-80", "A100-80GB", "A100-80GB-SXM"},
    ShortName{"V100-16", "V100-16GB", "V100-16GB-SXM"},
    ShortName{"V100-32", "V100-32GB", "V100-32GB-SXM"},
    ShortName{"GH-96", "GH200-96GB", "GH200-96GB"},
    ShortName{"RTX-2080", "RTX-2080", "RTX-2080-Ti"},
    ShortName{"T4-16", "T4", "T4"},
    ShortName{"P3", "V100-16GB", "V100-16GB-SXM"},
    ShortName{"G4", "T4", "T4"},
    ShortName{"P100", "P100-16GB", "P100-16GB-SXM"},
};

// As the driver names them (nvidia-smi -L, nccl-tests), without "NVIDIA" and "Tesla" before.
constexpr std::array kDriverNames = {
    ShortName{"A100-SXM4-40GB", "A100-40GB-SXM", "A100-40GB-SXM"},
    ShortName{"A100-SXM4-80GB", "A100-80GB-SXM", "A100-80GB-SXM"},
    ShortName{"A100-PCIE-40GB", "A100-40GB-PCIe", "A100-40GB-PCIe"},
    ShortName{"A100 80GB PCIe", "A100-80GB-PCIe", "A100-80GB-PCIe"},
    ShortName{"A800-SXM4-80GB", "A800-80GB-SXM", "A800-80GB-SXM"},
    ShortName{"H100 80GB HBM3", "H100-80GB-SXM", "H100-80GB-SXM"},
    ShortName{"H100 PCIe", "H100-80GB-PCIe", "H100-80GB-PCIe"},
    ShortName{"H100 NVL", "H100-94GB-NVL", "H100-94GB-NVL"},
    ShortName{"H800", "H800-80GB-SXM", "H800-80GB-SXM"},
    ShortName{"H200", "H200-141GB-SXM", "H200-141GB-SXM"},
    ShortName{"H20", "H20-96GB-SXM", "H20-96GB-SXM"},
    ShortName{"GH200 480GB", "GH200-96GB", "GH200-96GB"},
    ShortName{"GH200 144G HBM3e", "GH200-144GB", "GH200-144GB"},
    ShortName{"GB200", "GB200-186GB", "GB200-186GB"},
    ShortName{"GB300", "GB300-288GB", "GB300-288GB"},
    ShortName{"B300 SXM6 AC", "B300-288GB-SXM", "B300-288GB-SXM"},
    ShortName{"B200", "B200-180GB-SXM", "B200-180GB-SXM"},
    ShortName{"V100-SXM2-16GB", "V100-16GB-SXM", "V100-16GB-SXM"},
    ShortName{"V100-SXM2-32GB", "V100-32GB-SXM", "V100-32GB-SXM"},
    ShortName{"V100-PCIE-16GB", "V100-16GB-PCIe", "V100-16GB-PCIe"},
    ShortName{"P100-SXM2-16GB", "P100-16GB-SXM", "P100-16GB-SXM"},
    ShortName{"RTX A6000", "A6000", "A6000"},
    ShortName{"RTX PRO 6000 Blackwell Workstation Edition", "RTX-PRO-6000-96GB", "RTX-PRO-6000-96GB"},
    ShortName{"RTX 6000 Ada Generation", "RTX-6000-Ada", "RTX-6000-Ada"},
    ShortName{"GeForce RTX 3080", "RTX-3080", "RTX-3080"},
    ShortName{"GeForce RTX 5090", "RTX-5090", "RTX-5090"},
    ShortName{"GeForce RTX 3090", "RTX-3090", "RTX-3090"},
    ShortName{"GeForce RTX 4090", "RTX-4090", "RTX-4090"},
    ShortName{"GeForce RTX 2080 Ti", "RTX-2080-Ti", "RTX-2080-Ti"},
    ShortName{"TITAN RTX", "Titan-RTX", "Titan-RTX"},
    ShortName{"AMD Instinct MI210", "MI210-64GB", "MI210-64GB"},
    ShortName{"AMD Instinct MI250X", "MI250X-64GB-GCD", "MI250X-64GB-GCD"},
    ShortName{"AMD Instinct MI300X OAM", "MI300X-192GB", "MI300X-192GB"},
    ShortName{"AMD Instinct MI325X OAM", "MI325X-256GB", "MI325X-256GB"},
    ShortName{"AMD Instinct MI350X OAM", "MI350X-288GB", "MI350X-288GB"},
    ShortName{"AMD Instinct MI355X OAM", "MI355X-288GB", "MI355X-288GB"},
};

std::string_view without_brand(std::string_view name) {
  for (const std::string_view brand : {"NVIDIA ", "Tesla "}) {
    if (name.starts_with(brand)) name.remove_prefix(brand.size());
  }
  return name;
}

template <std::size_t kSize>
const ShortName* find_in(const std::array<ShortName, kSize>& names, std::string_view name) {
  const auto found = std::ranges::find_if(names, [&](const ShortName& s) { return s.name == name; });
  return found != names.end() ? &*found : nullptr;
}

const ShortName* short_name(std::string_view name) {
  const ShortName* found = find_in(kShortNames, name);
  return found != nullptr ? found : find_in(kDriverNames, without_brand(name));
}

}  // namespace

const GpuType* device_of(const std::string& name, std::span<const GpuType> devices) {
  const auto named = [&](std::string_view wanted) -> const GpuType* {
    const auto found = std::ranges::find_if(devices, [&](const auto& device) { return device.name == wanted; });
    return found != devices.end() ? &*found : nullptr;
  };
  if (const auto* exact = named(without_brand(name))) return exact;
  const ShortName* known = short_name(name);
  return known != nullptr ? named(known->usual) : nullptr;
}

std::string suggested_gpu(std::string_view name, std::span<const GpuType> devices, std::string otherwise) {
  std::vector<std::string> names;
  for (const GpuType& device : devices) names.push_back(device.name);
  const auto near = closest(name, names);
  return near ? fmt::format("did you mean \"{}\"?", *near) : std::move(otherwise);
}

bool may_mean(const std::string& name, const std::string& catalogue_name) {
  if (name == catalogue_name) return true;
  const ShortName* known = short_name(name);
  return known != nullptr && catalogue_name.starts_with(known->family);
}

std::vector<DriverName> driver_names() {
  std::vector<DriverName> names;
  names.reserve(kDriverNames.size());
  for (const ShortName& name : kDriverNames) names.push_back({name.name, name.usual});
  return names;
}

}  // namespace tangram::cluster
