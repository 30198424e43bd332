#include "tangram/relax/state_memory.hpp"

#include <algorithm>

namespace tangram::relax {

Bytes usable_memory(const cluster::IslandLevel& level, std::span<const std::string> types) {
  Bytes total{0};
  for (const cluster::IslandClass& c : level.classes) {
    const bool counts = types.empty() || std::ranges::find(types, c.device.name) != types.end();
    if (counts) total += c.device.usable() * c.gpu_count();
  }
  return total;
}

Bytes least_state(const model::Model& model) {
  const std::int64_t per_trained = model.job.gradient_bytes + model.job.optimizer.state_bytes_per_parameter;
  return Bytes(model.total_parameters() * model.job.parameter_bytes + model.trained_parameters() * per_trained);
}

}  // namespace tangram::relax
