#include "tangram/kernels/roofline.hpp"

#include <algorithm>

namespace tangram::kernels {

std::optional<double> roofline_seconds(const Roofline& roofline, const Work& work, const cluster::GpuType& gpu,
                                       DType dtype) {
  const double peak = gpu.peak_of(dtype).value();
  if (work.flops > 0 && peak <= 0) return std::nullopt;
  const double computing = work.flops > 0 ? work.flops / (roofline.compute * peak) : 0;
  const double moving = work.bytes / (roofline.memory * gpu.memory_bandwidth.value());
  return roofline.floor + std::max(computing, moving);
}

}  // namespace tangram::kernels
