// The GPUs of a node as cluster.json describes them: type, count, how they are linked, what was measured.
#pragma once

#include <string>
#include <vector>

#include "gpu_records.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cluster {

/// Reads the array "gpus" of a node. `keys` receives each group's type as the file spells it.
[[nodiscard]] std::vector<DeviceGroup> read_device_groups(io::ObjectReader& node, const GpuTable& types,
                                                          std::vector<std::string>& keys);

/// Puts what "measured" says in place of the datasheet's figures of `group`.
void apply_measurements(io::ObjectReader& measured, DeviceGroup& group);

/// The host bus that all groups have: the slowest PCIe link.
[[nodiscard]] Link slowest_host_bus(const std::vector<DeviceGroup>& groups);

}  // namespace tangram::cluster
