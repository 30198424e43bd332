#include "modelled.hpp"

#include <algorithm>

#include "tangram/cost/block_time.hpp"
#include "tangram/cost/scaled_rows.hpp"

namespace tangram::calibrate {

std::optional<cluster::DeviceShape> island_shape(const plan::PlanIsland& island, int gpus) {
  const int members = std::max(1, gpus / island.gpus_per_member);
  if (members > 1 && gpus % island.gpus_per_member != 0) return std::nullopt;
  cluster::DeviceShape shape;
  shape.device = island.device;
  shape.nodes = members;
  shape.per_node = gpus / members;
  if (shape.gpus() != gpus || shape.per_node > island.gpus_per_member) return std::nullopt;
  shape.intra = island.inside_member;
  shape.intra.bandwidth = bandwidth_among(island.device, island.inside_member, shape.per_node);
  shape.inter = island.between_members;
  return shape;
}

Modelled modelled(const model::Model& model, const TimedUnit& unit, const cost::Degrees& degrees,
                  const cluster::DeviceShape& shape) {
  const cost::BlockTime time = cost::modelled_time(model, unit.unit, unit.samples, degrees, shape);
  const cost::Passes tensor = unit.includes_tp_communication ? time.tensor : cost::Passes{};
  return {time.compute.forward + tensor.forward, time.compute.backward + tensor.backward, time.selective_compute};
}

std::vector<Elsewhere> modelled_elsewhere(const model::Model& model, const TimedUnit& unit, const ShapeOf& shape_of) {
  std::vector<Elsewhere> points;
  for (const cost::Degrees& degrees : cost::usual_degrees(model, unit.unit)) {
    const auto shape = shape_of(degrees.gpus());
    if (!shape) continue;
    for (std::int64_t samples = 1; samples <= cost::kMostScaledSamples; samples *= 2) {
      const cost::BlockTime time = cost::modelled_time(model, unit.unit, samples, degrees, *shape);
      Elsewhere point{degrees, samples, time.compute, time.tensor};
      point.degrees.dp = 1;
      points.push_back(point);
    }
  }
  return points;
}

cost::Passes share_of_trained(const model::Model& model, cost::ProfileKind kind, const std::string& type,
                              const cost::Degrees& degrees, std::int64_t samples, const cluster::DeviceShape& shape) {
  const auto count = static_cast<double>(samples);
  if (kind == cost::ProfileKind::kBlock) {
    const auto block = std::ranges::find(model.types, type, &model::BlockType::name);
    if (block == model.types.end() || block->gradients == model::Gradients{}) return {1, 1};
    return cost::share_of_trained(cost::block_time(*block, model.job, degrees, count, shape),
                                  cost::block_time(plain(*block), model.job, degrees, count, shape));
  }
  if (kind != cost::ProfileKind::kHead || model.end_gradients() == model::Gradients{}) return {1, 1};
  return cost::share_of_trained(cost::head_time(model, degrees, count, shape),
                                cost::head_time(cost::unfrozen(model), degrees, count, shape));
}

cost::ProfileUnit block_of(const model::BlockType& type, const model::Job& job, const cluster::GpuType& device) {
  cost::ProfileUnit unit;
  unit.kind = cost::ProfileKind::kBlock;
  unit.block = type;
  unit.block.name.clear();
  unit.sequence_length = type.tokens;
  unit.dtype = cost::matrix_format(device, job.precision);
  unit.flash_attention = job.flash_attention;
  return unit;
}

cost::ProfileUnit edge_of(cost::ProfileKind kind, const model::Model& model, const cluster::GpuType& device) {
  cost::ProfileUnit unit;
  unit.kind = kind;
  unit.vocabulary = model.vocabulary;
  unit.hidden = model.hidden;
  unit.sequence_length = model.job.sequence_length;
  unit.dtype = cost::matrix_format(device, model.job.precision);
  return unit;
}

}  // namespace tangram::calibrate
