// What joins GPUs of one node where nothing else is said.
#pragma once

#include "tangram/cluster/gpu.hpp"

namespace tangram::cluster {

/// Whether the fabric of the datasheet (NVLink, Infinity Fabric) joins so many GPUs.
[[nodiscard]] inline bool fabric_spans(const GpuType& device, int gpus) {
  return device.peer_link.bandwidth.value() > 0 && (device.peer_reach == 0 || device.peer_reach >= gpus);
}

/// That fabric, else the host bus.
[[nodiscard]] inline const Link& usual_link(const GpuType& device, int gpus) {
  return fabric_spans(device, gpus) ? device.peer_link : device.pcie;
}

}  // namespace tangram::cluster
