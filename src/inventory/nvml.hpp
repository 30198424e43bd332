// NVIDIA's management library, opened while the program runs: one binary for machines with and without a driver.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "tangram/base/units.hpp"

namespace tangram::inventory {

struct DriverGpu {
  std::string name;
  Bytes memory;
  int pcie_generation = 0;  ///< the best that slot and GPU can do together; 0: not told
  int pcie_lanes = 0;
  bool sliced = false;  ///< cut into slices (MIG)
  std::string failure;  ///< why it cannot be asked; empty: it can
};

struct DriverGpus {
  std::vector<DriverGpu> gpus;            ///< in the order of the PCIe bus, as nvidia-smi counts them
  std::vector<std::vector<bool>> nvlink;  ///< gpus x gpus
};

/// What the driver knows. `library` is a name that the loader looks up, or a path. The error is one line.
[[nodiscard]] tl::expected<DriverGpus, std::string> ask_driver(const std::string& library);

}  // namespace tangram::inventory
