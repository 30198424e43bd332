// The bus between a host and its GPUs.
#pragma once

#include <optional>
#include <vector>

#include "tangram/inventory/inventory.hpp"

namespace tangram::inventory {

/// GB/s in one direction of a PCIe link, in the round numbers of datasheets: 16 lanes of generation 3 carry 16. 0 for a
/// generation that is not known.
[[nodiscard]] double pcie_gigabytes(int generation, int lanes);

/// The bus of the slowest of the GPUs' slots, where that is slower than the GPUs' own PCIe.
[[nodiscard]] std::optional<cluster::Link> slower_bus(const std::vector<FoundGpus>& gpus, double slot_gigabytes);

}  // namespace tangram::inventory
