#include "tangram/relax/state_memory.hpp"

#include <algorithm>

#include "tangram/cost/narrow.hpp"

namespace tangram::relax {

Bytes usable_memory(const cluster::IslandLevel& level, std::span<const std::string> types) {
  Bytes total{0};
  for (const cluster::IslandClass& c : level.classes) {
    const bool counts = types.empty() || std::ranges::find(types, c.device.name) != types.end();
    if (counts) total += c.device.usable() * c.gpu_count();
  }
  return total;
}

double state_bytes(const model::Job& job, double held, std::int64_t trained) {
  return held * cost::least_parameter_bytes(job) +
         static_cast<double>(trained) * (static_cast<double>(job.gradient_bytes) + model::resident_state_bytes(job));
}

Bytes least_state(const model::Model& model) {
  const double bytes = state_bytes(model.job, model.held_parameters(), model.trained_parameters());
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace tangram::relax
