// What `nvidia-smi topo -m` prints: how any two GPUs and network cards of a host reach each other.
#pragma once

#include <vector>

#include "places.hpp"

namespace tangram::inventory {

struct TopologyMatrix {
  int gpus = 0;
  int cards = 0;                          ///< network cards for GPU traffic: NIC0, mlx5_0, ...
  std::vector<std::vector<bool>> nvlink;  ///< gpus x gpus, symmetric: NVLink joins them

  /// GPUs that NVLink joins among these: all of them, or the size of the equal cliques they fall into; 1 where it joins
  /// none or not alike.
  [[nodiscard]] int joined(const std::vector<int>& which) const;
};

[[nodiscard]] Expected<TopologyMatrix> parse_topology(const io::Document& document);

}  // namespace tangram::inventory
