// Fleets drawn as text, for tests. Goes in: "[A100-80x8 a]==ib200==[A100-80x8 b]--eth10--[V100-32x4 c]".
// Comes out: a cluster::Fleet.
//
//   [TYPExCOUNT name options]   a node; TYPExCOUNT+TYPExCOUNT: two groups; name*3: the nodes name-0, name-1, name-2
//   ==ib200==                   the next node is in the same rack, 200 Gbit/s per node
//   --eth10--                   the next node is in another rack, 10 Gbit/s per node between the racks
//
// A node's network is what the == links of its rack say, alone in a rack the faster of its -- links, alone in the fleet
// 100 Gbit/s; nodes in different racks see the slowest -- link between them. ib has 2 us of latency, eth 20 us. Racks
// are the labels rack=r1, r2, ... where the text has any -- link.
// Options: net=25 (Gbit/s), compute=0.7, memory=0.5, membw=0.5 (factors on the type's figures), clique=2 (GPUs that
// share the fast link), bus=10 (GB/s, host link per GPU), price=12 (dollars per hour); any other key=value is a label.
#pragma once

#include <string>
#include <string_view>

#include "tangram/cluster/fleet.hpp"

namespace tangram::testing {

/// A100-40, A100-80, H100-80, V100-32, T4, RTX3080, RTX4090, with datasheet figures. Throws std::invalid_argument.
[[nodiscard]] cluster::GpuType gpu_type(std::string_view name);

/// Throws std::invalid_argument for text that it does not understand.
[[nodiscard]] cluster::Fleet topology(std::string_view text);

}  // namespace tangram::testing
