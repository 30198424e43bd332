#include "tangram/cost/stage.hpp"

#include <algorithm>
#include <cmath>

namespace tangram::cost {
namespace {

/// Sums over the units of one slice, in doubles until everything is in.
struct Sums {
  double forward = 0;
  double shared = 0;
  double expert = 0;
  double all = 0;

  void add(const UnitCost& unit, double count, int zero) {
    forward += count * (zero >= 3 ? unit.forward + unit.zero3_gather : unit.forward);
    shared += count * unit.shared_parameters;
    expert += count * unit.expert_parameters;
    all += count * unit.all_parameters;
  }
};

Sums sum_units(const UnitCosts& units, const model::SliceSignature& slice, int zero) {
  Sums sums;
  if (slice.embedding) sums.add(units.embedding, 1, zero);
  for (const auto& [type, count] : slice.runs) sums.add(units.blocks[static_cast<std::size_t>(type)], count, zero);
  if (slice.head) {
    sums.add(units.head, 1, zero);
    if (!slice.embedding) {  // a copy of the tied matrix
      sums.shared += units.tied_parameters;
      sums.all += units.tied_matrix;
    }
  }
  return sums;
}

/// What recompute changes, summed over the units of one slice.
class RecomputeSums {
 public:
  RecomputeSums(const UnitCosts& units, int zero)
      : zero_(zero),
        gradient_bytes_(static_cast<double>(units.gradient_bytes)),
        parameter_bytes_(static_cast<double>(units.parameter_bytes)) {}

  /// `count` equal units, of which `recomputed` are recomputed.
  void add(const UnitCost& unit, double count, RecomputeMode mode = RecomputeMode::kNone, double recomputed = 0) {
    const bool full = mode == RecomputeMode::kFull;
    const double kept = full ? unit.activation_full : unit.activation_selective;
    backward += count * backward_of(unit);
    backward += recomputed * (full ? unit.recompute_full : unit.recompute_selective);
    activation += (count - recomputed) * unit.activation_none + recomputed * kept;
    const double brought_back = recomputed > 0 ? unit.activation_none - kept : 0;
    transient = std::max(transient, unit.working + brought_back + zero_buffers(unit));
  }

  double backward = 0;
  double activation = 0;
  double transient = 0;

 private:
  [[nodiscard]] double backward_of(const UnitCost& unit) const {
    if (zero_ >= 3) return unit.backward + unit.zero3_backward;
    return zero_ == 2 ? unit.backward + unit.zero2_scatter : unit.backward;
  }

  [[nodiscard]] double zero_buffers(const UnitCost& unit) const {
    if (zero_ < 2) return 0;
    const double parameters = unit.shared_parameters + unit.expert_parameters;
    double bytes = parameters * gradient_bytes_;
    if (zero_ >= 3) bytes += 2 * parameters * parameter_bytes_;
    return bytes;
  }

  int zero_;
  double gradient_bytes_;
  double parameter_bytes_;
};

/// The head's recompute does not exist: its logits are used at once.
RecomputeSums sum_recompute(const UnitCosts& units, const model::SliceSignature& slice, const MemoryPolicy& policy) {
  RecomputeSums sums(units, policy.zero);
  if (slice.embedding) sums.add(units.embedding, 1);
  const RecomputeMode mode = policy.recompute;
  int to_recompute = mode == RecomputeMode::kFull ? policy.recompute_layers : 0;
  for (const auto& [type, count] : slice.runs) {
    const int recomputed = mode == RecomputeMode::kSelective ? count : std::min(count, to_recompute);
    sums.add(units.blocks[static_cast<std::size_t>(type)], count, mode, recomputed);
    to_recompute -= std::min(count, to_recompute);
  }
  if (slice.head) sums.add(units.head, 1);
  return sums;
}

/// Send and receive buffers of the stage's two cuts, each for an activation and a gradient of one microbatch.
double boundary_buffers(const UnitCosts& units, const model::SliceSignature& slice) {
  const Degrees& degrees = units.degrees;
  const int shards = degrees.dp * degrees.cp * (degrees.sequence_parallel ? degrees.tp : 1);
  const double samples = static_cast<double>(units.samples) / shards;
  return 2 * samples * static_cast<double>(slice.entry_bytes + slice.exit_bytes);
}

double collective_of(Collective kind, const Sums& sums, std::int64_t bytes_per_parameter, const UnitCosts& units) {
  const double bytes = static_cast<double>(bytes_per_parameter);
  return collective_seconds(kind, sums.shared * bytes, units.groups.data, units.shape, units.curves) +
         collective_seconds(kind, sums.expert * bytes, units.groups.expert_data, units.shape, units.curves);
}

double gradient_sync_seconds(const Sums& sums, int zero, const UnitCosts& units) {
  if (zero >= 2) return 0;
  const Collective kind = zero == 1 ? Collective::kReduceScatter : Collective::kAllReduce;
  return collective_of(kind, sums, units.gradient_bytes, units);
}

double optimizer_seconds(const Sums& sums, double owned, int zero, const UnitCosts& units) {
  const cluster::GpuType& device = units.shape.device;
  // Each owned parameter: gradient read for the norm and for the update, state read and written, parameter written.
  const double bytes =
      owned * static_cast<double>(2 * units.gradient_bytes + 2 * units.optimizer_bytes + units.parameter_bytes);
  const double rate = device.memory_bandwidth.value() * device.compute.memory_efficiency;
  double seconds = std::max(bytes / rate, to_seconds(device.compute.kernel_launch));
  if (zero == 1 || zero == 2) seconds += collective_of(Collective::kAllGather, sums, units.parameter_bytes, units);
  return seconds;
}

}  // namespace

StageCoster::StageCoster(const UnitCosts& units, const model::SliceSignature& slice, int zero)
    : units_(&units), slice_(&slice), zero_(zero), boundary_(boundary_buffers(units, slice)) {
  const Sums sums = sum_units(units, slice, zero);
  const double shard = sums.shared / units.groups.data.size() + sums.expert / units.groups.expert_data.size();
  const double whole = sums.shared + sums.expert;
  const auto held = [&](int from_stage) { return zero >= from_stage ? shard : whole; };

  fixed_.forward = ceil_to_nanoseconds(sums.forward);
  fixed_.gradient_sync = ceil_to_nanoseconds(gradient_sync_seconds(sums, zero, units));
  fixed_.optimizer_step = ceil_to_nanoseconds(optimizer_seconds(sums, held(1), zero, units));
  fixed_.parameters = ceil_to_bytes(held(3) * static_cast<double>(units.parameter_bytes));
  fixed_.gradients = ceil_to_bytes(held(2) * static_cast<double>(units.gradient_bytes));
  fixed_.optimizer_state = ceil_to_bytes(held(1) * static_cast<double>(units.optimizer_bytes));
  fixed_.gradient_volume = ceil_to_bytes(sums.all * static_cast<double>(units.gradient_bytes));
}

RecomputeCost StageCoster::recompute(RecomputeMode mode, int layers) const {
  const RecomputeSums sums = sum_recompute(*units_, *slice_, {zero_, mode, layers});
  return {ceil_to_nanoseconds(sums.backward), ceil_to_bytes(sums.transient + boundary_),
          ceil_to_bytes(sums.activation)};
}

StageCost StageCoster::cost(RecomputeMode mode, int layers) const {
  const RecomputeCost variable = recompute(mode, layers);
  StageCost cost = fixed_;
  cost.backward = variable.backward;
  cost.transient = variable.transient;
  cost.activation = variable.activation;
  cost.provenance = slice_provenance(*units_, *slice_);
  return cost;
}

StageCost stage_cost(const UnitCosts& units, const model::SliceSignature& slice, const MemoryPolicy& policy) {
  return StageCoster(units, slice, policy.zero).cost(policy.recompute, policy.recompute_layers);
}

std::int64_t max_in_flight(const StageCost& cost, Bytes usable) {
  return max_in_flight(usable - cost.static_memory() - cost.transient, cost.activation);
}

std::int64_t max_in_flight(Bytes room, Bytes activation) {
  constexpr std::int64_t kUnlimited = 1'000'000;
  if (room.value() < activation.value() || room.value() < 0) return 0;
  if (activation.value() <= 0) return kUnlimited;
  return std::min(kUnlimited, room.value() / activation.value());
}

Nanoseconds exposed_sync(Nanoseconds sync, Nanoseconds backward) {
  // In nanoseconds throughout: whole inputs stay whole.
  return Nanoseconds(
      static_cast<std::int64_t>(std::max(0.0, std::ceil(sync.as_double() - kSyncOverlap * backward.as_double()))));
}

Nanoseconds replica_sync(Bytes volume, int replicas, const cluster::Link& link, int members) {
  if (replicas <= 1) return Nanoseconds(0);
  const double r = replicas;
  const double rate = aggregate_bandwidth(link, members).value() * kNetworkShare;
  return link.latency * (2LL * (replicas - 1)) + ceil_to_nanoseconds(2 * (r - 1) / r * volume.as_double() / rate);
}

BoundaryCost boundary_cost(Bytes bytes, const cluster::Link& link, int source_members, int source_gpus,
                           int target_members, int target_gpus) {
  const int members = std::min(source_members, target_members);
  const int larger = std::max(source_gpus, target_gpus);
  const int smaller = std::min(source_gpus, target_gpus);
  const int messages = (larger + smaller - 1) / smaller;
  BoundaryCost cost;
  cost.occupancy =
      ceil_to_nanoseconds(bytes.as_double() / (aggregate_bandwidth(link, members).value() * kNetworkShare));
  cost.latency = link.latency * messages + cost.occupancy;
  return cost;
}

}  // namespace tangram::cost
