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

std::int64_t state_bytes(const model::Job& job, std::int64_t parameters, std::int64_t trained) {
  return parameters * job.parameter_bytes + trained * (job.gradient_bytes + job.optimizer.state_bytes_per_parameter);
}

Bytes least_state(const model::Model& model) {
  return Bytes(state_bytes(model.job, model.total_parameters(), model.trained_parameters()));
}

}  // namespace tangram::relax
