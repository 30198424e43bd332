// What this machine is beside its GPUs' driver.
#pragma once

#include <string>
#include <vector>

namespace tangram::inventory {

/// From hwloc; empty where the program was built without it.
struct Board {
  std::string cpu;  ///< model
  int sockets = 0;
  int numa_nodes = 0;
  std::vector<std::string> gpus;  ///< GPUs on the PCIe bus, with a driver or without: "NVIDIA 10de:2330"
};
[[nodiscard]] Board look_at_board();

struct Port {
  std::string name;  ///< "mlx5_0 port 1"
  double gigabits = 0;
  bool ethernet = false;  ///< RoCE; else InfiniBand
};
/// Active ports of RDMA cards under `sys`/class/infiniband, sorted by name.
[[nodiscard]] std::vector<Port> active_ports(const std::string& sys);

[[nodiscard]] std::string host_name();

}  // namespace tangram::inventory
