#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

#include "metis.hpp"
#include "partition.hpp"
#include "tangram/base/at.hpp"

namespace tangram::baseline {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMemoryFactor = 5.0;  // the original's allowance over one layer's profiled memory
constexpr int kMostAttempts = 3;
constexpr double kOverload = 0.9;  // of the share that would just fit
constexpr double kSettled = 0.01;  // of all layers: less than this need not find a stage
constexpr double kNoRoom = 0.001;

/// A number of samples that was not profiled is put together from powers of two.
double seconds_of(const PlannerInput& input, const Replica& replica, int first, int last) {
  double sum = 0;
  for (std::int64_t bit = 1; bit <= replica.samples; bit *= 2) {
    if ((replica.samples & bit) != 0) sum += input.seconds(replica.kind, replica.tp, bit, first, last);
  }
  return sum;
}

/// Of all units. Stages that are alike tie, and the original's roundings decide: it adds up milliseconds.
double profiled_milliseconds(const PlannerInput& input, int kind, int tp, std::int64_t samples) {
  const GridPoint* point = input.at(kind, tp, samples);
  if (point == nullptr) return kInfinity;
  double sum = 0;
  for (const UnitProfile& unit : point->units) sum += unit.seconds() * 1e3;
  return sum;
}

/// The same, put together from powers of two, the largest first.
double milliseconds_of(const PlannerInput& input, const Replica& replica) {
  double sum = 0;
  for (auto bit = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(replica.samples))); bit > 0;
       bit /= 2) {
    if ((replica.samples & bit) != 0) sum += profiled_milliseconds(input, replica.kind, replica.tp, bit);
  }
  return sum;
}

double memory_of(const UnitProfile& unit, double in_flight) { return unit.state + in_flight * unit.activation; }

/// The smallest power of two that holds the samples, because that is what was profiled.
std::int64_t profiled(std::int64_t samples) {
  std::int64_t size = 1;
  while (size < samples) size *= 2;
  return size;
}

/// What a stage's memory is, and what its layers need.
struct StageMemory {
  double there = 0;
  double needed = 0;
};

/// Stages whose memory is overfull give up some of their share of the layers to the others, each of which takes its
/// part, by the shares, of what those before it left, as far as its memory allows. False: there is too little room.
bool shift_shares(std::vector<double>& shares, const std::vector<StageMemory>& memory) {
  const std::vector<double> before = shares;
  std::vector<double> room(shares.size(), 0);
  std::vector<double> gained(shares.size(), 0);
  double surplus = 0;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const auto& [there, needed] = memory[s];
    if (there > needed) {
      room[s] = shares[s] * there / needed - shares[s];
    } else {
      shares[s] = shares[s] * (there / needed) * kOverload;
      surplus += before[s] - shares[s];
    }
  }
  if (std::accumulate(room.begin(), room.end(), 0.0) < surplus) return false;
  while (surplus > kSettled) {
    double takers = 0;
    for (std::size_t s = 0; s < shares.size(); ++s) takers += room[s] > kNoRoom ? before[s] : 0;
    if (takers <= 0) break;
    std::vector<double> parts(shares.size(), 0);
    for (std::size_t s = 0; s < shares.size(); ++s) parts[s] = room[s] > kNoRoom ? before[s] / takers : 0;
    for (std::size_t s = 0; s < shares.size(); ++s) {
      const double taken = std::min(room[s], surplus * parts[s]);
      gained[s] += taken;
      room[s] -= taken;
      surplus -= taken;
    }
  }
  for (std::size_t s = 0; s < shares.size(); ++s) shares[s] += gained[s];
  return true;
}

bool on_one_node(const PlannerInput& input, const MetisStage& stage) {
  int gpus = 0;
  for (const Replica& replica : stage.replicas) gpus += replica.tp;
  return stage.one_kind && gpus <= at(input.kinds, stage.replicas.front().kind).per_node;
}

}  // namespace

std::vector<MetisStage> Metis::stages(const MetisLayout& layout, const std::vector<MetisStrategy>& strategies) const {
  std::vector<MetisStage> stages;
  int gpu = 0;
  for (const MetisStrategy& strategy : strategies) {
    const auto [dp, tp] = strategy;
    MetisStage stage{strategy, {}, true, false};
    for (int d = 0; d < dp; ++d, gpu += tp) {
      const int kind = at(layout.row, gpu);
      stage.replicas.push_back({kind, tp, 0});
      stage.one_kind &= kind == stage.replicas.front().kind;
      stage.straddles |= kind != at(layout.row, gpu + tp - 1);
    }
    stage.one_kind &= !stage.straddles;
    const std::int64_t each = input_.batch / dp / layout.batches;
    std::vector<double> times;
    for (const Replica& replica : stage.replicas) {
      times.push_back(profiled_milliseconds(input_, replica.kind, tp, 1));
      if (!std::isfinite(times.back())) return {};
    }
    const auto shares = split_samples(input_.batch / layout.batches, times);
    for (std::size_t d = 0; d < shares.size(); ++d) stage.replicas[d].samples = stage.one_kind ? each : shares[d];
    for (const Replica& replica : stage.replicas) {
      if (!std::isfinite(seconds_of(input_, replica, 0, input_.units()))) return {};
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

double Metis::stage_seconds(const MetisStage& stage, int first, int last) const {
  if (stage.one_kind) return seconds_of(input_, stage.replicas.front(), first, last);
  double slowest = 0;
  for (const Replica& replica : stage.replicas) {
    slowest = std::max(slowest, seconds_of(input_, replica, first, last));
  }
  return slowest;
}

std::vector<double> Metis::speeds(const std::vector<MetisStage>& stages) const {
  std::vector<double> speeds;
  speeds.reserve(stages.size());
  for (const MetisStage& stage : stages) {
    double slowest = 0;
    for (const Replica& replica : stage.replicas) slowest = std::max(slowest, milliseconds_of(input_, replica));
    speeds.push_back(1 / slowest);
  }
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  for (double& speed : speeds) speed /= sum;
  return speeds;
}

double Metis::memory_there(const MetisStage& stage) const {
  double pooled = 0;
  for (const Replica& replica : stage.replicas) {
    const GpuKind& kind = at(input_.kinds, replica.kind);
    // Its cluster file has the whole memory of a GPU.
    pooled += replica.tp * std::max(kind.memory, kind.device.memory.as_double());
  }
  return pooled;
}

/// The original, against the pooled memory: one replica's worth, by the type of rank 0, whatever the stage runs on. Of
/// a stage of several types, what all GPUs of the cluster would hold if they shared its samples; a share that was not
/// profiled counts as the powers of two it consists of, with the weights of each.
double Metis::memory_needed(const MetisLayout& layout, const MetisStage& stage, int first, int last) const {
  const int lead = layout.row.front();
  const auto [dp, tp] = stage.strategy;
  const auto of = [&](std::int64_t samples) {
    const GridPoint* point = input_.at(lead, tp, samples);
    if (point == nullptr) return kInfinity;
    double sum = 0;
    for (int u = first; u < last; ++u) sum += memory_of(at(point->units, u), 1);
    return kMemoryFactor * sum;
  };
  if (stage.one_kind) return of(profiled(input_.batch / dp / layout.batches));
  const std::int64_t each = std::ssize(layout.row) / dp;
  std::vector<double> times;
  for (int d = 0; d < dp; ++d) {
    times.push_back(profiled_milliseconds(input_, at(layout.row, d * each), tp, 1));
    if (!std::isfinite(times.back())) return kInfinity;
  }
  double sum = 0;
  for (const std::int64_t share : split_samples(input_.batch / layout.batches, times)) {
    for (std::int64_t bit = 1; bit <= share; bit *= 2) sum += (share & bit) != 0 ? of(bit) : 0;
  }
  return sum;
}

std::vector<int> Metis::exact_partition(const MetisLayout& layout, const std::vector<MetisStage>& stages) const {
  CutProblem problem;
  problem.units = input_.units();
  problem.stages = static_cast<int>(stages.size());
  problem.seconds = [&](int s, int first, int last) { return stage_seconds(at(stages, s), first, last); };
  problem.fits = [&](int s, int first, int last) {
    const auto depth =
        static_cast<double>(std::min<std::int64_t>(static_cast<std::int64_t>(stages.size()) - s, layout.batches));
    const auto& replicas = at(stages, s).replicas;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      if (r > 0 && replicas[r].kind == replicas[r - 1].kind && replicas[r].samples == replicas[r - 1].samples) continue;
      const GridPoint* point = input_.at(replicas[r].kind, replicas[r].tp, profiled(replicas[r].samples));
      if (point == nullptr) return false;
      double held = 0;
      double working = 0;
      for (int u = first; u < last; ++u) {
        const UnitProfile& unit = at(point->units, u);
        held += memory_of(unit, depth);
        working = std::max(working, unit.working);
      }
      if (held + working > at(input_.kinds, replicas[r].kind).memory) return false;
    }
    return true;
  };
  return fastest_cuts(problem);
}

std::vector<int> Metis::partition(const MetisLayout& layout, const std::vector<MetisStage>& stages, int& attempts,
                                  std::vector<double>& headroom) const {
  attempts = 1;
  if (mode_ == Mode::kRepaired) return exact_partition(layout, stages);
  // Weights: one sample without tensor parallelism on the type that is read first.
  const GridPoint* first = input_.at(0, 1, 1);
  if (first == nullptr) return {};
  std::vector<double> weights;
  const double whole = profiled_milliseconds(input_, 0, 1, 1);
  for (const UnitProfile& unit : first->units) weights.push_back(unit.seconds() * 1e3 / whole);
  std::vector<double> shares = speeds(stages);
  for (; attempts <= kMostAttempts; ++attempts) {
    const auto cuts = balance_by_sevenths(weights, shares);
    std::vector<StageMemory> memory;
    headroom.clear();
    for (std::size_t s = 0; s < stages.size(); ++s) {
      memory.push_back({memory_there(stages[s]), memory_needed(layout, stages[s], cuts[s], cuts[s + 1])});
      headroom.push_back(memory.back().there - memory.back().needed);
    }
    if (std::ranges::all_of(headroom, [](double room) { return room >= 0; })) return cuts;
    if (!shift_shares(shares, memory)) break;
  }
  headroom.clear();
  return {};
}

double Metis::bandwidth(const MetisStage& stage) const {
  double slowest = kInfinity;
  const bool inside = mode_ == Mode::kFaithful || on_one_node(input_, stage);
  for (const Replica& replica : stage.replicas) {
    const GpuKind& kind = at(input_.kinds, replica.kind);
    slowest = std::min(slowest, inside ? kind.inside : kind.outside);
  }
  return slowest;
}

/// The original takes numbers of parameters for bytes.
double Metis::sync_seconds(const MetisStage& stage, int first, int last) const {
  const auto [dp, tp] = stage.strategy;
  const GridPoint* whole = input_.at(0, 1, 1);
  if (whole == nullptr || dp == 1) return 0;
  double parameters = 0;
  for (int u = first; u < last; ++u) parameters += at(whole->units, u).parameters;
  const double width = mode_ == Mode::kFaithful ? 1 : input_.gradient_bytes;
  return 2.0 * (dp - 1) / (dp * bandwidth(stage)) * parameters * width / tp;
}

/// The original counts elements, and in front of the head, not behind it, those of the logits.
double Metis::boundary_seconds(const MetisStage& from, const MetisStage& to, std::int64_t microbatch, int unit) const {
  if (mode_ == Mode::kFaithful) {
    const bool logits = unit == input_.units() - 1;
    const double tensor = logits ? input_.activation_last / from.strategy.tp : input_.activation;
    const auto samples = static_cast<double>(microbatch / from.strategy.dp);
    return samples * tensor / input_.parameter_bytes / std::min(bandwidth(from), bandwidth(to));
  }
  const double bytes =
      static_cast<double>(microbatch) * (unit >= input_.units() ? input_.activation_last : input_.activation);
  const auto outside = [&](const MetisStage& stage) { return at(input_.kinds, stage.replicas.front().kind).outside; };
  return 2 * bytes / std::min(outside(from), outside(to));
}

double Metis::cost(const MetisLayout& layout, const std::vector<MetisStage>& stages,
                   const std::vector<int>& cuts) const {
  const auto batches = static_cast<double>(layout.batches);
  const auto counted = static_cast<std::size_t>(layout.costed_stages);
  double slowest = 0;
  double filling = 0;
  double step = 0;
  double sync = 0;
  double handing = 0;
  const GridPoint* whole = input_.at(0, 1, 1);
  for (std::size_t s = 0; s < counted; ++s) {
    const double seconds = stage_seconds(stages[s], cuts[s], cuts[s + 1]);
    slowest = std::max(slowest, seconds);
    filling += seconds;
    const double layers = static_cast<double>(cuts[s + 1] - cuts[s]) / input_.units();
    if (whole != nullptr) step = std::max(step, 2 * whole->optimizer / stages[s].strategy.tp * layers);
    sync = std::max(sync, sync_seconds(stages[s], cuts[s], cuts[s + 1]));
    if (s + 1 < counted) {
      handing += boundary_seconds(stages[s], stages[s + 1], input_.batch / layout.batches, cuts[s + 1]);
    }
  }
  double fixed = 0;
  for (const Replica& replica : stages.back().replicas) {
    const GridPoint* point = input_.at(replica.kind, replica.tp, profiled(replica.samples));
    if (point != nullptr) fixed = std::max(fixed, point->fixed);
  }
  return (batches - 1) * slowest + filling + batches * (fixed + input_.per_microbatch) + step + sync + handing;
}

}  // namespace tangram::baseline
