#include "tangram/base/assert.hpp"
#include "tangram/cluster/islands.hpp"

namespace tangram::cluster {

DeviceShape make_shape(const IslandClass& island_class, int gpus) {
  const int per_member = island_class.gpus_per_member;
  TANGRAM_ASSERT(gpus > 0 && gpus <= island_class.gpu_count());
  if (gpus <= per_member) {
    Link share = island_class.between_members;
    share.bandwidth = share.bandwidth * (static_cast<double>(gpus) / per_member);
    return {island_class.device, 1, gpus, island_class.inside_member, share};
  }
  TANGRAM_ASSERT(gpus % per_member == 0);
  const int members = gpus / per_member;
  const Link& inter =
      members <= island_class.members_per_island ? island_class.between_members : island_class.between_islands;
  return {island_class.device, members, per_member, island_class.inside_member, inter};
}

}  // namespace tangram::cluster
