#include "modelled.hpp"

#include <algorithm>
#include <numeric>

#include "tangram/cost/block_time.hpp"
#include "tangram/cost/validity.hpp"

namespace tangram::calibrate {
namespace {

constexpr int kDegrees[] = {1, 2, 4, 8};
constexpr std::int64_t kMostSamples = 128;

cost::BlockTime unit_time(const model::Model& model, const cost::ProfileUnit& unit, std::int64_t samples,
                          const cost::Degrees& degrees, const cluster::DeviceShape& shape) {
  const auto count = static_cast<double>(samples);
  switch (unit.kind) {
    case cost::ProfileKind::kBlock: return block_time(unit.block, model.job, degrees, count, shape);
    case cost::ProfileKind::kEmbedding: return embedding_time(model, degrees, count, shape);
    case cost::ProfileKind::kHead: return head_time(model, degrees, count, shape);
  }
  return {};
}

/// Of the unit, where nothing else is in the model.
std::vector<cost::Degrees> usual_degrees(const model::Model& model, const cost::ProfileUnit& unit) {
  model::Model alone;
  alone.job = model.job;
  model::SliceSignature slice;
  if (unit.kind == cost::ProfileKind::kBlock) {
    alone.types = {unit.block};
    slice.runs = {{0, 1}};
  }
  const bool experts = unit.kind == cost::ProfileKind::kBlock && unit.block.feed_forward.is_moe();
  std::vector<cost::Degrees> found;
  for (const int tp : kDegrees) {
    for (const int cp : kDegrees) {
      for (const int ep : kDegrees) {
        for (const bool sequence_parallel : {false, true}) {
          if (ep > 1 && !experts) continue;
          const cost::Degrees degrees =
              with_least_replicas({.tp = tp, .cp = cp, .ep = ep, .sequence_parallel = sequence_parallel});
          if (cost::why_unsupported(alone, slice, degrees, degrees.dp).empty()) found.push_back(degrees);
        }
      }
    }
  }
  return found;
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
  const cost::BlockTime time = unit_time(model, unit.unit, unit.samples, degrees, shape);
  const cost::Passes tensor = unit.includes_tp_communication ? time.tensor : cost::Passes{};
  return {time.compute.forward + tensor.forward, time.compute.backward + tensor.backward, time.selective_compute};
}

std::vector<Elsewhere> modelled_elsewhere(const model::Model& model, const TimedUnit& unit, const ShapeOf& shape_of) {
  std::vector<Elsewhere> points;
  for (const cost::Degrees& degrees : usual_degrees(model, unit.unit)) {
    const auto shape = shape_of(degrees.gpus());
    if (!shape) continue;
    for (std::int64_t samples = 1; samples <= kMostSamples; samples *= 2) {
      const cost::BlockTime time = unit_time(model, unit.unit, samples, degrees, *shape);
      Elsewhere point{degrees, samples, time.compute, time.tensor};
      point.degrees.dp = 1;
      points.push_back(point);
    }
  }
  return points;
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
