#include "tangram/cluster/price.hpp"

#include <algorithm>
#include <cmath>

namespace tangram::cluster {

// A price that is known stays above zero, which says that it is not.
MicroDollarsPerHour price_of(const IslandClass& island_class) {
  const double micro = island_class.price_per_gpu_hour.value() * 1e6;
  return MicroDollarsPerHour(micro > 0 ? std::max<std::int64_t>(1, std::llround(micro)) : 0);
}

}  // namespace tangram::cluster
