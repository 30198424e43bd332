#include "modelled.hpp"

#include <numeric>

#include "tangram/cost/block_time.hpp"

namespace tangram::calibrate {
namespace {

cost::BlockTime unit_time(const model::Model& model, const TimedUnit& unit, const cost::Degrees& degrees,
                          const cluster::DeviceShape& shape) {
  const auto samples = static_cast<double>(unit.samples);
  switch (unit.unit.kind) {
    case cost::ProfileKind::kBlock: return block_time(unit.unit.block, model.job, degrees, samples, shape);
    case cost::ProfileKind::kEmbedding: return embedding_time(model, degrees, samples, shape);
    case cost::ProfileKind::kHead: return head_time(model, degrees, samples, shape);
  }
  return {};
}

}  // namespace

cost::Degrees with_least_replicas(cost::Degrees degrees) {
  const int dense = degrees.tp * degrees.cp;
  degrees.dp = std::lcm(dense, degrees.ep * degrees.etp) / dense;
  return degrees;
}

cluster::DeviceShape one_host(const cluster::GpuType& device, int gpus) {
  cluster::DeviceShape shape;
  shape.device = device;
  shape.per_node = gpus;
  shape.intra = device.peer_link.bandwidth.value() > 0 ? device.peer_link : device.pcie;
  shape.intra.bandwidth = bandwidth_among(device, shape.intra, gpus);
  return shape;
}

Modelled modelled(const model::Model& model, const TimedUnit& unit, const cost::Degrees& degrees,
                  const cluster::DeviceShape& shape) {
  const cost::BlockTime time = unit_time(model, unit, degrees, shape);
  const cost::Passes tensor = unit.includes_tp_communication ? time.tensor : cost::Passes{};
  return {time.compute.forward + tensor.forward, time.compute.backward + tensor.backward, time.selective_compute};
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
