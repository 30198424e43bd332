#include "host_bus.hpp"

#include <algorithm>

namespace tangram::inventory {

double pcie_gigabytes(int generation, int lanes) {
  constexpr int kGenerations = 6;  // each doubles the rate of the one before it; the first has 0.25 GB/s a lane
  if (generation < 1 || generation > kGenerations || lanes < 1 || lanes > 32) return 0;
  return 0.25 * static_cast<double>(1 << (generation - 1)) * lanes;
}

std::optional<cluster::Link> slower_bus(const std::vector<FoundGpus>& gpus, double slot_gigabytes) {
  if (!(slot_gigabytes > 0) || gpus.empty()) return std::nullopt;
  cluster::Link bus;
  bool slower = false;
  for (const FoundGpus& group : gpus) {
    slower = slower || slot_gigabytes * 1e9 < group.device->pcie.bandwidth.value();
    bus.latency = std::max(bus.latency, group.device->pcie.latency);
  }
  if (!slower) return std::nullopt;
  bus.bandwidth = BytesPerSecond(slot_gigabytes * 1e9);
  return bus;
}

}  // namespace tangram::inventory
