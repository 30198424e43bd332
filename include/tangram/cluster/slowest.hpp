// What several GPUs together can be relied on for: the least of each in every metric.
#pragma once

#include "tangram/cluster/gpu.hpp"

namespace tangram::cluster {

[[nodiscard]] Link slower_of(const Link& a, const Link& b);

/// The name stays that of `a`.
[[nodiscard]] GpuType slower_of(const GpuType& a, const GpuType& b);

}  // namespace tangram::cluster
