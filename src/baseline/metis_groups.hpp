// How Metis cuts a number of GPUs into pipeline stages. Goes in: GPUs, stages, its two search settings. Comes out: GPUs
// of each stage, for every layout it looks at, in its order; different orders of merged stages may give the same one
// twice, and both count.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tangram::baseline {

/// Its command line takes whole numbers for the variance only; these are those of its manual.
struct MetisSettings {
  double variance = 1;     ///< no stage has less than this share of an even split
  int permute_length = 4;  ///< more stages than this are permuted in pairs, pairs of pairs, ...
};

using DeviceGroups = std::vector<int>;

/// Powers of two that sum to `gpus`. False from `visit` ends the walk; the result says whether it ended by itself.
bool for_device_groups(int gpus, int stages, const MetisSettings& settings,
                       const std::function<bool(const DeviceGroups&)>& visit);

}  // namespace tangram::baseline
