#include "tangram/baseline/input.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "tangram/base/at.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::baseline {

namespace {

std::string region_of(const cluster::Node& node) {
  for (const char* key : {"region", "zone"}) {
    if (const auto label = node.labels.find(key); label != node.labels.end()) return label->second;
  }
  return {};
}

GpuKind& kind_of(std::vector<GpuKind>& kinds, const cluster::DeviceGroup& group, const std::string& region) {
  const auto alike = [&](const GpuKind& kind) { return kind.device == group.device && kind.region == region; };
  const auto found = std::ranges::find_if(kinds, alike);
  if (found != kinds.end()) return *found;
  GpuKind kind;
  kind.name = group.device.name;
  kind.region = region;
  kind.device = group.device;
  kind.per_node = group.count;
  kind.memory = group.device.usable().as_double();
  kind.inside = group.link.bandwidth.value();
  kind.latency = group.link.latency;
  kind.outside = std::numeric_limits<double>::infinity();
  kinds.push_back(std::move(kind));
  return kinds.back();
}

int gpus_of(const cluster::Node& node) {
  int gpus = 0;
  for (const cluster::DeviceGroup& group : node.groups) gpus += group.count;
  return gpus;
}

std::vector<GpuKind> kinds_of(const cluster::Fleet& fleet) {
  std::vector<GpuKind> kinds;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    const cluster::Node& node = fleet.nodes[n];
    for (const cluster::DeviceGroup& group : node.groups) {
      GpuKind& kind = kind_of(kinds, group, region_of(node));
      kind.nodes.emplace_back(n, group.count);
      kind.gpus += group.count;
      kind.per_node = std::min(kind.per_node, group.count);
      kind.outside = std::min(kind.outside, node.network.bandwidth.value());
      const double hour = node.price_per_hour.value() > 0 ? node.price_per_hour.value() / gpus_of(node)
                                                          : group.device.price_per_hour.value();
      kind.price_per_second = std::max(kind.price_per_second, hour / 3600);
    }
  }
  return kinds;
}

/// The narrower of both nodes' networks, of which each GPU that takes part has its share.
std::function<double(double, int, int, int, int)> network_of(std::vector<GpuKind> kinds) {
  return [kinds = std::move(kinds)](double bytes, int from, int from_gpus, int to, int to_gpus) {
    const auto rate = [&](int kind, int gpus) {
      const GpuKind& k = at(kinds, kind);
      return k.outside * std::min(1.0, static_cast<double>(gpus) / k.per_node);
    };
    return bytes / std::min(rate(from, from_gpus), rate(to, to_gpus));
  };
}

UnitProfile profile_of(const cost::UnitCost& unit, const cost::UnitCosts& costs) {
  UnitProfile profile;
  profile.forward = unit.forward;
  profile.backward = unit.backward;
  profile.parameters = unit.shared_parameters + unit.expert_parameters;
  const double trained = unit.trained_shared + unit.trained_expert;
  profile.state = profile.parameters * static_cast<double>(costs.parameter_bytes) +
                  trained * (static_cast<double>(costs.gradient_bytes) + costs.optimizer_bytes);
  profile.activation = unit.activation_none;
  profile.working = unit.working;
  return profile;
}

GridPoint point_of(const model::Model& model, const cost::UnitCosts& costs) {
  GridPoint point;
  point.units.push_back(profile_of(costs.embedding, costs));
  for (const int type : model.blocks) {
    point.units.push_back(profile_of(at(costs.blocks, type), costs));
  }
  point.units.push_back(profile_of(costs.head, costs));
  const model::SliceSignature whole = model::signature(model, 0, model.block_count());
  point.optimizer = to_seconds(cost::stage_cost(costs, whole, {}).optimizer_step);
  return point;
}

void add_kind(PlannerInput& input, int index, const cost::ProfileSet* profiles, std::int64_t most_samples) {
  const GpuKind& kind = at(input.kinds, index);
  for (int tp = 1; tp <= kind.per_node; tp *= 2) {
    cluster::DeviceShape shape;
    shape.device = kind.device;
    shape.per_node = tp;
    shape.intra = {BytesPerSecond(kind.inside), kind.latency};
    shape.inter = shape.intra;
    const cost::Degrees degrees = replica_degrees(input.model, tp);
    for (std::int64_t samples = 1; samples <= most_samples; samples *= 2) {
      if (!cost::why_unsupported(input.model, degrees, static_cast<int>(samples)).empty()) continue;
      const auto costs = cost::unit_costs(input.model, shape, degrees, static_cast<int>(samples), profiles);
      if (costs) input.grid.emplace(std::tuple(index, tp, samples), point_of(input.model, *costs));
    }
  }
}

}  // namespace

cost::Degrees replica_degrees(const model::Model& model, int tp) {
  cost::Degrees degrees;
  degrees.tp = tp;
  // Megatron-Core has no experts under tensor parallelism without sequence parallelism.
  if (tp > 1 && model.has_experts()) {
    degrees.sequence_parallel = true;
    degrees.etp = tp;
  }
  return degrees;
}

int PlannerInput::gpus() const {
  int sum = 0;
  for (const GpuKind& kind : kinds) sum += kind.gpus;
  return sum;
}

const GridPoint* PlannerInput::at(int kind, int tp, std::int64_t samples) const {
  const auto found = grid.find({kind, tp, samples});
  return found == grid.end() ? nullptr : &found->second;
}

std::vector<int> PlannerInput::tensor_degrees() const {
  std::set<int> degrees;
  for (const auto& [key, point] : grid) degrees.insert(std::get<1>(key));
  return {degrees.begin(), degrees.end()};
}

std::vector<std::int64_t> PlannerInput::sample_counts() const {
  std::set<std::int64_t> counts;
  for (const auto& [key, point] : grid) counts.insert(std::get<2>(key));
  return {counts.begin(), counts.end()};
}

double PlannerInput::seconds(int kind, int tp, std::int64_t samples, int first, int last) const {
  const GridPoint* point = at(kind, tp, samples);
  if (point == nullptr) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int unit = first; unit < last; ++unit) sum += tangram::at(point->units, unit).seconds();
  return sum;
}

PlannerInput read_input(const cluster::Fleet& fleet, const model::Model& model, const cost::ProfileSet* profiles,
                        std::int64_t most_samples) {
  PlannerInput input;
  input.model = model;
  input.kinds = kinds_of(fleet);
  input.blocks = model.block_count();
  input.batch = model.job.global_batch;
  input.parameter_bytes = static_cast<double>(model.job.parameter_bytes);
  input.gradient_bytes = static_cast<double>(model.job.gradient_bytes);
  input.activation = input.blocks > 1 ? static_cast<double>(model::cut_bytes(model, 1)) : 0;
  input.activation_last = static_cast<double>(model.job.sequence_length * model.vocabulary * model.job.parameter_bytes);
  input.message = network_of(input.kinds);
  for (int k = 0; k < static_cast<int>(input.kinds.size()); ++k) add_kind(input, k, profiles, most_samples);
  return input;
}

}  // namespace tangram::baseline
