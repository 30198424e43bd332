#include "tangram/cost/stage.hpp"
#include "tangram/base/at.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "tangram/base/assert.hpp"

namespace tangram::cost {
namespace {

constexpr std::ptrdiff_t kFewRuns = 8;  // are added up one by one

double backward_of(const UnitCost& unit, int zero) {
  if (zero >= 3) return unit.backward + unit.zero3_backward;
  return zero == 2 ? unit.backward + unit.zero2_scatter : unit.backward;
}

double kept_of(const UnitCost& unit, RecomputeMode mode) {
  if (mode == RecomputeMode::kNone) return unit.activation_none;
  return mode == RecomputeMode::kFull ? unit.activation_full : unit.activation_selective;
}

double recompute_of(const UnitCost& unit, int zero, RecomputeMode mode) {
  if (mode == RecomputeMode::kNone) return 0;
  if (mode == RecomputeMode::kSelective) return unit.recompute_selective;
  return zero >= 3 ? unit.recompute_full + unit.zero3_recompute : unit.recompute_full;
}

double zero_buffers(const UnitCosts& units, const UnitCost& unit, int zero) {
  if (zero < 2) return 0;
  const double parameters = unit.shared_parameters + unit.expert_parameters;
  const cluster::ExecutionMethods& methods = units.shape.methods;
  double by_tensor = (unit.trained_shared + unit.trained_expert) * static_cast<double>(units.gradient_bytes);
  if (zero < 3) return unit.tensor_share * by_tensor;
  by_tensor += unit.copies;
  const bool ahead = methods.gathered_once && methods.gather_barrier <= 0;
  const double gathered = ahead ? 2 : 1;  // the next unit's as well
  return gathered * parameters * unit.gathered_bytes + unit.tensor_share * by_tensor;
}

/// Under ZeRO-3 they are made of what is gathered, and let go with it.
double copies_of(const UnitCost& unit, int zero) {
  if (zero >= 3) return 0;
  return zero == 0 ? unit.copies : unit.gathered_copies;
}

/// Parameters on one GPU before ZeRO.
struct Sharing {
  double shared = 0;
  double expert = 0;
  Sharing& operator+=(const Sharing& other) {
    shared += other.shared;
    expert += other.expert;
    return *this;
  }
  Sharing operator-(const Sharing& part) const { return {shared - part.shared, expert - part.expert}; }
  Sharing operator*(double factor) const { return {shared * factor, expert * factor}; }
  [[nodiscard]] double whole() const { return shared + expert; }
  [[nodiscard]] double shard(const ProcessGroups& groups) const {
    return shared / groups.shards.size() + expert / groups.expert_shards.size();
  }
};

/// Sums over units of one ZeRO stage, in doubles until everything is in.
struct Sums {
  double forward = 0;
  double busy = 0;        ///< of backward, with gathers and scatters
  double parameters = 0;  ///< on one GPU before ZeRO
  Sharing trained;
  Sharing gathered;   ///< bytes of trained parameters that ZeRO-1 and 2 gather
  double volume = 0;  ///< trained parameters, unsharded
  double copies = 0;  ///< bytes of weights as products read them
  Sharing kept;       ///< bytes of parameters from ZeRO-1 on
  double cast = 0;    ///< bytes moved to make these
  double alone = 0;

  void add(const UnitCost& unit, double count, int zero) {
    forward += count * (zero >= 3 ? unit.forward + unit.zero3_gather : unit.forward);
    busy += count * (zero >= 3 ? unit.zero3_busy : unit.zero2_busy);
    parameters += count * (unit.shared_parameters + unit.expert_parameters);
    trained.shared += count * unit.trained_shared;
    trained.expert += count * unit.trained_expert;
    volume += count * unit.trained_parameters;
    gathered.shared += count * unit.trained_shared * unit.gathered_bytes;
    gathered.expert += count * unit.trained_expert * unit.gathered_bytes;
    copies += count * copies_of(unit, zero);
    kept += {count * unit.kept_shared, count * unit.kept_expert};
    cast += count * unit.cast;
    alone += count * unit.alone;
  }
};

/// The embedding of a first stage: its parameters are the first to be read, its gradient is the last to be known.
struct Entry {
  int zero = 0;
  Sharing trained;
  Sharing gathered;  ///< bytes
  bool whole_model = false;

  [[nodiscard]] bool is_gathered() const { return zero == 1 || zero == 2; }
};

std::optional<Entry> entry_of(const UnitCosts& units, const model::SliceSignature& slice, int zero) {
  if (!slice.embedding) return std::nullopt;
  const Sharing trained{units.embedding.trained_shared, units.embedding.trained_expert};
  return Entry{zero, trained, trained * units.embedding.gathered_bytes, slice.head};
}

/// By ZeRO stage. Most slices have one.
class SumsByZero {
 public:
  explicit SumsByZero(std::optional<Entry> entry = std::nullopt) : entry_(entry) {}

  Sums& at(int zero) {
    lowest_ = std::min(lowest_, zero);
    highest_ = std::max(highest_, zero);
    return tangram::at(sums_, zero);
  }
  [[nodiscard]] const Sums& operator[](int zero) const { return tangram::at(sums_, zero); }
  [[nodiscard]] const std::optional<Entry>& entry() const { return entry_; }
  /// Trained parameters whose gradients are known while backward goes on.
  [[nodiscard]] Sharing known_before_end(int zero) const {
    const Sharing& all = (*this)[zero].trained;
    return entry_ && entry_->whole_model && entry_->zero == zero ? all - entry_->trained : all;
  }
  /// Those that may have units; there are none below or above.
  [[nodiscard]] int lowest() const { return lowest_; }
  [[nodiscard]] int highest() const { return highest_; }

 private:
  std::array<Sums, 4> sums_;
  int lowest_ = 3;
  int highest_ = 0;
  std::optional<Entry> entry_;
};

/// All blocks under one ZeRO stage, without recompute.
auto alike(const UnitCosts& units, const model::SliceSignature& slice, int zero) {
  return [&units, &slice, zero](const auto& visit) {
    for (const auto& [type, count] : slice.runs) {
      visit(at(units.blocks, type), count, BlockPolicy{zero, RecomputeMode::kNone});
    }
  };
}

/// The slice's runs, cut where the policy changes; what runs are short of is as their last.
auto run_by_run(const UnitCosts& units, const model::SliceSignature& slice, const std::vector<BlockRun>& runs) {
  return [&units, &slice, &runs](const auto& visit) {
    std::size_t run = 0;
    int used = 0;
    for (const auto& [type, count] : slice.runs) {
      for (int left = count; left > 0;) {
        while (run + 1 < runs.size() && used == runs[run].blocks) {
          ++run;
          used = 0;
        }
        const bool last = run + 1 == runs.size();
        const int blocks = last ? left : std::min(left, runs[run].blocks - used);
        visit(at(units.blocks, type), blocks, runs[run].policy);
        left -= blocks;
        used += blocks;
      }
    }
  };
}

/// `blocks(visit)` visits the blocks; the ends have `zero`.
template <class Blocks>
SumsByZero sum_units(const UnitCosts& units, const model::SliceSignature& slice, int zero, const Blocks& blocks) {
  SumsByZero sums(entry_of(units, slice, zero));
  Sums& ends = sums.at(zero);
  if (slice.embedding) ends.add(units.embedding, 1, zero);
  blocks([&](const UnitCost& unit, int count, const BlockPolicy& policy) {
    sums.at(policy.zero).add(unit, count, policy.zero);
  });
  if (slice.head) {
    ends.add(units.head, 1, zero);
    if (!slice.embedding) ends.add(tied_unit(units), 1, zero);
  }
  return sums;
}

/// What recompute changes, summed over the units of one slice.
class RecomputeSums {
 public:
  explicit RecomputeSums(const UnitCosts& units) : units_(units) {}

  /// `count` equal units, of which `recomputed` are recomputed.
  void add(const UnitCost& unit, double count, int zero, RecomputeMode mode = RecomputeMode::kNone,
           double recomputed = 0) {
    const double kept = kept_of(unit, mode);
    backward += count * backward_of(unit, zero);
    backward += recomputed * recompute_of(unit, zero, mode);
    activation += (count - recomputed) * unit.activation_none + recomputed * kept;
    const double working = unit.working + (recomputed > 0 ? unit.activation_none - kept : 0);
    const double buffers = zero_buffers(units_, unit, zero);
    beside_own_ = std::max(beside_own_, working + buffers);
    working_ = std::max(working_, working);
    buffers_ = std::max(buffers_, buffers);
    lowest_zero_ = std::min(lowest_zero_, zero);
    highest_zero_ = std::max(highest_zero_, zero);
  }

  /// Units of one ZeRO stage have their own buffers beside them; else those of any other may be there.
  [[nodiscard]] double transient() const { return lowest_zero_ < highest_zero_ ? working_ + buffers_ : beside_own_; }

  double backward = 0;
  double activation = 0;

 private:
  const UnitCosts& units_;
  double beside_own_ = 0;
  double working_ = 0;
  double buffers_ = 0;
  int lowest_zero_ = 3;
  int highest_zero_ = 0;
};

/// The head's recompute does not exist: its logits are used at once.
template <class Blocks>
RecomputeSums sum_with_ends(const UnitCosts& units, const model::SliceSignature& slice, int zero,
                            const Blocks& blocks) {
  RecomputeSums sums(units);
  if (slice.embedding) sums.add(units.embedding, 1, zero);
  blocks(sums);
  if (slice.head) sums.add(units.head, 1, zero);
  return sums;
}

RecomputeSums sum_recompute(const UnitCosts& units, const model::SliceSignature& slice, int zero, RecomputeMode mode,
                            int layers) {
  return sum_with_ends(units, slice, zero, [&](RecomputeSums& sums) {
    int to_recompute = mode == RecomputeMode::kFull ? layers : 0;
    for (const auto& [type, count] : slice.runs) {
      const int recomputed = mode == RecomputeMode::kSelective ? count : std::min(count, to_recompute);
      sums.add(at(units.blocks, type), count, zero, mode, recomputed);
      to_recompute -= std::min(count, to_recompute);
    }
  });
}

RecomputeCost rounded(const RecomputeSums& sums, double boundary) {
  return {ceil_to_nanoseconds(sums.backward), ceil_to_bytes(sums.transient() + boundary),
          ceil_to_bytes(sums.activation)};
}

/// A group for the shared parameters and one for the experts.
struct Groups {
  Group shared;
  Group expert;
};
Groups all_replicas(const ProcessGroups& groups) { return {groups.data, groups.expert_data}; }
Groups of_shards(const ProcessGroups& groups) { return {groups.shards, groups.expert_shards}; }
Groups of_copies(const ProcessGroups& groups) { return {groups.copies, groups.expert_copies}; }

/// In how many parts each of two groups exchanges. No parameter is in two buckets.
struct Buckets {
  double shared = 1;
  double expert = 1;
};

/// A first stage has its gradients reduced bucket by bucket, and its parameters gathered so; others, whose exchanges
/// are not on the critical path, as a whole (Megatron-Core, distributed_data_parallel.py).
Buckets buckets_of(const SumsByZero& sums, const Sharing& parameters, const UnitCosts& units) {
  if (!sums.entry()) return {};
  const auto count = [&](double own) { return std::max(1.0, own / units.gradient_bucket); };
  return {count(parameters.shared), count(parameters.expert)};
}

double collective_of(Collective kind, const Sharing& bytes, const Groups& groups, const UnitCosts& units,
                     const Buckets& buckets = {}) {
  const auto seconds = [&](double own, const Group& group, double parts) {
    return own > 0 ? parts * collective_seconds(kind, own / parts, group, units.shape, units.curves) : 0;
  };
  return seconds(bytes.shared, groups.shared, buckets.shared) + seconds(bytes.expert, groups.expert, buckets.expert);
}

/// Gradients are sharded as backward knows them, with each microbatch; else they are whole up until the last one, and
/// reduced once an iteration.
bool shards_gradients(int zero, const UnitCosts& units) {
  return zero == 2 || (zero == 3 && !units.shape.methods.reduced_once);
}

/// Gradients of one ZeRO stage, once an iteration, inside the groups that shard.
double reduced_seconds(int zero, const Sharing& parameters, const Buckets& buckets, const UnitCosts& units) {
  if (shards_gradients(zero, units)) return 0;
  const Sharing bytes = parameters * static_cast<double>(units.gradient_bytes);
  if (zero == 0) return collective_of(Collective::kAllReduce, bytes, all_replicas(units.groups), units, buckets);
  return collective_of(Collective::kReduceScatter, bytes, of_shards(units.groups), units, buckets);
}

/// The shards of gradients, once they are reduced inside their groups, among the groups.
double copies_sync_seconds(const Sharing& parameters, const Buckets& buckets, const UnitCosts& units) {
  if (units.degrees.dp_replicate == 1) return 0;
  const Sharing shards{parameters.shared / units.groups.shards.size(),
                       parameters.expert / units.groups.expert_shards.size()};
  return collective_of(Collective::kAllReduce, shards * static_cast<double>(units.gradient_bytes),
                       of_copies(units.groups), units, buckets);
}

/// Whether gathers and scatters of ZeRO-2 and 3 leave the links among groups alone.
bool are_inside_members(const ProcessGroups& groups) {
  return groups.shards.members == 1 && groups.expert_shards.members == 1;
}

/// What backward may hide.
double gradient_sync_seconds(const SumsByZero& sums, const UnitCosts& units) {
  double inside = 0;
  Sharing sharded;
  for (int zero = sums.lowest(); zero <= sums.highest(); ++zero) {
    const Sharing own = sums.known_before_end(zero);
    inside += reduced_seconds(zero, own, buckets_of(sums, own, units), units);
    if (zero >= 1) sharded += own;
  }
  const double among = copies_sync_seconds(sharded, buckets_of(sums, sharded, units), units);
  const bool waits = inside > 0 || (among > 0 && !are_inside_members(units.groups));
  return inside + among + (waits ? kSyncHidden * (sums[2].busy + sums[3].busy) : 0);
}

/// The embedding's gradient, which no backward pass is left to hide. Of a pipeline's first stage it is part of what
/// backward may hide: the step waits for all stages, and cannot have the exchange of one.
double last_sync_seconds(const std::optional<Entry>& entry, const UnitCosts& units) {
  if (!entry || !entry->whole_model) return 0;
  const double inside = reduced_seconds(entry->zero, entry->trained, {}, units);
  return entry->zero >= 1 ? inside + copies_sync_seconds(entry->trained, {}, units) : inside;
}

/// Trained parameters on one GPU: of ZeRO stages that `is_sharded` the shards, of others all, at so many bytes each.
template <class IsSharded>
double held(const SumsByZero& sums, const ProcessGroups& groups, const IsSharded& is_sharded, double whole,
            double shard) {
  double bytes = 0;
  for (int zero = sums.lowest(); zero <= sums.highest(); ++zero) {
    const Sharing& own = sums[zero].trained;
    bytes += is_sharded(zero) ? own.shard(groups) * shard : own.whole() * whole;
  }
  return bytes;
}

bool shards_optimizer(int zero) { return zero >= 1; }

/// Parameters that ZeRO-1 and 2 have updated, with `forward` seconds of a microbatch behind them. Beside it the
/// embedding's are gathered first, before any forward pass.
double gather_seconds(const SumsByZero& sums, double forward, const UnitCosts& units) {
  const auto both = [&](Sharing Sums::* part) {
    Sharing of_both = sums[1].*part;
    of_both += sums[2].*part;
    return of_both;
  };
  const auto of = [&](const Sharing& bytes, const Buckets& buckets = {}) {
    return collective_of(Collective::kAllGather, bytes, of_shards(units.groups), units, buckets);
  };
  const Sharing gathered = both(&Sums::gathered);
  const bool again = units.shape.methods.gathered_by_each_optimizer && gathered.expert > 0;
  if (!units.gathers_beside) return (again ? 2 : 1) * of(gathered);
  const Entry first = sums.entry() && sums.entry()->is_gathered() ? *sums.entry() : Entry{};
  const Buckets buckets = buckets_of(sums, both(&Sums::trained) - first.trained, units);
  return of(first.gathered) + seconds_beside(of(gathered - first.gathered, buckets), kSyncOverlap * forward);
}

/// What the step takes with `forward` seconds of a microbatch behind it.
double optimizer_seconds(const SumsByZero& sums, double owned, double forward, const UnitCosts& units) {
  if (owned <= 0) return 0;
  // Each owned parameter: gradient read for the norm and for the update, state read and written, parameter written.
  const double updated =
      owned * (static_cast<double>(2 * units.gradient_bytes + units.parameter_bytes) + 2 * units.optimizer_bytes);
  double cast = 0;
  for (int zero = sums.lowest(); zero <= sums.highest(); ++zero) cast += sums[zero].cast;
  const double on_gpu =
      std::max((updated + cast) / units.memory_rate, to_seconds(units.shape.device.compute.kernel_launch));
  const double seconds = on_gpu + units.host_stepped * owned / kHostStepped;
  return seconds + gather_seconds(sums, forward, units);
}

/// Bytes of the state of parameters on one GPU.
struct HeldState {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
};

double parameter_bytes(const SumsByZero& sums, const UnitCosts& units) {
  double bytes = sums[0].parameters * static_cast<double>(units.parameter_bytes);
  for (int zero = sums.lowest(); zero <= sums.highest(); ++zero) {
    const Sharing& kept = sums[zero].kept;
    bytes += sums[zero].copies;
    if (zero > 0) bytes += zero < 3 ? kept.whole() : kept.shard(units.groups);
  }
  return bytes;
}

HeldState held_state(const SumsByZero& sums, const UnitCosts& units) {
  const auto gradient = static_cast<double>(units.gradient_bytes);
  const auto sharded = [&](int zero) { return shards_gradients(zero, units); };
  return {parameter_bytes(sums, units), held(sums, units.groups, sharded, gradient, gradient),
          held(sums, units.groups, shards_optimizer, units.optimizer_bytes, units.optimizer_bytes)};
}

/// Beside static memory while the optimizer steps.
Bytes update_memory(const SumsByZero& sums, const UnitCosts& units) {
  return ceil_to_bytes(held(sums, units.groups, shards_optimizer, 0, static_cast<double>(units.update_bytes)));
}

/// When the optimizer steps no activations are held: what its memory takes beyond those of one microbatch counts.
RecomputeCost with_update(RecomputeCost cost, Bytes update) {
  cost.transient = std::max(cost.transient, update - cost.activation);
  return cost;
}

/// Forward, sync, step and memory that recompute does not change.
StageCost fixed_cost(const SumsByZero& sums, const UnitCosts& units) {
  double forward = 0;
  double volume = 0;
  double alone = 0;
  for (int zero = sums.lowest(); zero <= sums.highest(); ++zero) {
    forward += sums[zero].forward;
    volume += sums[zero].volume;
    alone += sums[zero].alone;
  }
  StageCost cost;
  cost.forward = ceil_to_nanoseconds(forward);
  cost.gradient_sync = ceil_to_nanoseconds(gradient_sync_seconds(sums, units));
  cost.optimizer_step =
      ceil_to_nanoseconds(alone + last_sync_seconds(sums.entry(), units) +
                          optimizer_seconds(sums, held(sums, units.groups, shards_optimizer, 1, 1), forward, units));
  const HeldState state = held_state(sums, units);
  cost.parameters = ceil_to_bytes(state.parameters);
  cost.gradients = ceil_to_bytes(state.gradients);
  cost.optimizer_state = ceil_to_bytes(state.optimizer);
  cost.gradient_volume = ceil_to_bytes(volume * static_cast<double>(units.gradient_bytes));
  return cost;
}

StageCost with(StageCost cost, const RecomputeCost& variable) {
  cost.backward = variable.backward;
  cost.transient = variable.transient;
  cost.activation = variable.activation;
  return cost;
}

StageCost mixed_cost(const UnitCosts& units, const model::SliceSignature& slice, const MemoryPolicy& policy) {
  TANGRAM_ASSERT(units.unsupported.of(slice).empty());
  const auto blocks = run_by_run(units, slice, policy.runs);
  const RecomputeSums recompute = sum_with_ends(units, slice, policy.zero, [&](RecomputeSums& sums) {
    blocks([&](const UnitCost& unit, int count, const BlockPolicy& own) {
      sums.add(unit, count, own.zero, own.recompute, own.recompute == RecomputeMode::kNone ? 0 : count);
    });
  });
  const SumsByZero sums = sum_units(units, slice, policy.zero, blocks);
  StageCost cost = with(fixed_cost(sums, units),
                        with_update(rounded(recompute, boundary_buffers(units, slice)), update_memory(sums, units)));
  cost.provenance = slice_provenance(units, slice);
  return cost;
}

}  // namespace

UnitTerms unit_terms(const UnitCosts& units, const UnitCost& unit, const BlockPolicy& policy) {
  const auto [zero, mode] = policy;
  SumsByZero sums;
  Sums& own = sums.at(zero);
  own.add(unit, 1, zero);
  UnitTerms terms;
  terms.forward = own.forward;
  terms.backward = backward_of(unit, zero) + recompute_of(unit, zero, mode);
  const HeldState state = held_state(sums, units);
  terms.held = state.parameters + state.gradients + state.optimizer;
  terms.activation = kept_of(unit, mode);
  terms.working = unit.working + (unit.activation_none - terms.activation);
  terms.buffers = zero_buffers(units, unit, zero);
  return terms;
}

Nanoseconds least_time(const UnitCosts& units, const model::SliceSignature& slice) {
  const double forward = sum_units(units, slice, 0, alike(units, slice, 0))[0].forward;
  return ceil_to_nanoseconds(forward) +
         ceil_to_nanoseconds(sum_recompute(units, slice, 0, RecomputeMode::kNone, 0).backward);
}

double boundary_buffers(const UnitCosts& units, const model::SliceSignature& slice) {
  const Degrees& degrees = units.degrees;
  const int shards = degrees.cp * (degrees.sequence_parallel ? degrees.tp : 1);
  const double samples = static_cast<double>(degrees.most_samples(units.samples)) / shards;
  return 2 * samples * static_cast<double>(slice.entry_bytes + slice.exit_bytes);
}

StageCoster::StageCoster(const UnitCosts& units, const model::SliceSignature& slice, int zero)
    : units_(&units), slice_(&slice), zero_(zero), boundary_(boundary_buffers(units, slice)) {
  TANGRAM_ASSERT(units.unsupported.of(slice).empty());
  const SumsByZero sums = sum_units(units, slice, zero, alike(units, slice, zero));
  update_ = update_memory(sums, units);
  fixed_ = fixed_cost(sums, units);
}

double StageCoster::last_sync() const { return last_sync_seconds(entry_of(*units_, *slice_, zero_), *units_); }

RecomputeCost StageCoster::recompute(RecomputeMode mode, int layers) const {
  return with_update(rounded(sum_recompute(*units_, *slice_, zero_, mode, layers), boundary_), update_);
}

void FullRecompute::become(const StageCoster& coster) {
  const UnitCosts& units = *coster.units_;
  const int zero = coster.zero_;
  boundary_ = coster.boundary_;
  update_ = coster.update_;
  const auto end = [&](const UnitCost& unit) {
    return Sum{backward_of(unit, zero), unit.activation_none, unit.working + zero_buffers(units, unit, zero)};
  };
  last_ = coster.slice_->head ? end(units.head) : Sum{};
  runs_.clear();
  runs_.reserve(coster.slice_->runs.size());
  Sum sum = coster.slice_->embedding ? end(units.embedding) : Sum{};
  int before = 0;
  for (const auto& [type, count] : coster.slice_->runs) {
    const UnitCost& unit = tangram::at(units.blocks, type);
    const double buffers = zero_buffers(units, unit, zero);
    const double freed = unit.activation_none - unit.activation_full;
    runs_.push_back({before,
                     count,
                     count * backward_of(unit, zero),
                     recompute_of(unit, zero, RecomputeMode::kFull),
                     unit.activation_none,
                     unit.activation_full,
                     count * unit.activation_none,
                     unit.working + buffers,
                     unit.working + freed + buffers,
                     sum,
                     {}});
    add(runs_.back(), count, sum);
    before += count;
  }
  Sum behind = last_;
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    run->behind = behind;
    behind.backward += run->backward;
    behind.activation += run->held;
    behind.transient = std::max(behind.transient, run->transient);
  }
  adds_exactly_ = std::ssize(runs_) > kFewRuns && adds_exactly();
}

// Multiples of 2^-8 below 2^44 have 52 digits; so have their products with counts, which are among the sums.
bool FullRecompute::adds_exactly() const {
  constexpr double kUnits = 0x1p8;
  constexpr double kMost = 0x1p44;
  const auto is_multiple = [](double bytes) {
    return bytes >= 0 && bytes < kMost && bytes * kUnits == std::floor(bytes * kUnits);
  };
  if (!is_multiple(last_.activation) || !is_multiple(runs_.front().sum_before.activation)) return false;
  double most = last_.activation + runs_.front().sum_before.activation;
  for (const Run& run : runs_) {
    if (!is_multiple(run.kept) || !is_multiple(run.kept_recomputed)) return false;
    most += run.count * std::max(run.kept, run.kept_recomputed);
  }
  return most < kMost;
}

void FullRecompute::add(const Run& run, int recomputed, Sum& sum) {
  sum.backward += run.backward;
  sum.backward += recomputed * run.recompute;
  sum.activation += (run.count - recomputed) * run.kept + recomputed * run.kept_recomputed;
  sum.transient = std::max(sum.transient, recomputed > 0 ? run.transient_recomputed : run.transient);
}

// Of many runs the order of sums hardly ever shows once they are rounded up to whole nanoseconds and bytes.
std::optional<RecomputeCost> FullRecompute::in_any_order(const Sum& sum, const Sum& behind) const {
  const double error = 4 * static_cast<double>(runs_.size() + 2) * std::numeric_limits<double>::epsilon();
  const double backward = sum.backward + behind.backward;
  const double activation = sum.activation + behind.activation;
  const double of_activation = adds_exactly_ ? 0 : error;
  const RecomputeCost least{ceil_to_nanoseconds(backward * (1 - error)), Bytes(0),
                            ceil_to_bytes(activation * (1 - of_activation))};
  const RecomputeCost most{ceil_to_nanoseconds(backward * (1 + error)), Bytes(0),
                           ceil_to_bytes(activation * (1 + of_activation))};
  if (least.backward != most.backward || least.activation != most.activation) return std::nullopt;
  return RecomputeCost{most.backward, ceil_to_bytes(std::max(sum.transient, behind.transient) + boundary_),
                       most.activation};
}

// In the order of sum_recompute, for the same to the last bit. All runs before the one in which recompute ends are
// summed up already.
RecomputeCost FullRecompute::at(int layers) const {
  const auto behind = std::upper_bound(runs_.begin() + 1, runs_.end(), layers,
                                       [](int wanted, const Run& run) { return wanted <= run.before; });
  const Run& mixed = *(behind - 1);
  Sum sum = mixed.sum_before;
  add(mixed, std::min(mixed.count, layers - mixed.before), sum);
  if (runs_.end() - behind > kFewRuns) {
    if (const auto cost = in_any_order(sum, mixed.behind)) return with_update(*cost, update_);
  }
  for (auto run = behind; run != runs_.end(); ++run) {
    sum.backward += run->backward;
    sum.activation += run->held;
  }
  const RecomputeCost cost{ceil_to_nanoseconds(sum.backward + last_.backward),
                           ceil_to_bytes(std::max(sum.transient, mixed.behind.transient) + boundary_),
                           ceil_to_bytes(sum.activation + last_.activation)};
  return with_update(cost, update_);
}

StageCost StageCoster::cost(RecomputeMode mode, int layers) const {
  StageCost cost = with(fixed_, recompute(mode, layers));
  cost.provenance = slice_provenance(*units_, *slice_);
  return cost;
}

StageCost stage_cost(const UnitCosts& units, const model::SliceSignature& slice, const MemoryPolicy& policy) {
  if (policy.is_mixed()) return mixed_cost(units, slice, policy);
  return StageCoster(units, slice, policy.zero).cost(policy.recompute, policy.recompute_layers);
}

ChunkedCost chunked_cost(const UnitCosts& units, const std::vector<model::SliceSignature>& chunks,
                         const MemoryPolicy& policy) {
  TANGRAM_ASSERT(!chunks.empty() && !policy.is_mixed());
  ChunkedCost cost;
  cost.all.provenance = Provenance::kMeasured;
  Bytes update;
  Bytes most_held;
  for (const model::SliceSignature& chunk : chunks) {
    const StageCoster coster(units, chunk, policy.zero);
    const StageCost one = coster.cost(policy.recompute, std::min(policy.recompute_layers, chunk.block_count()));
    update += coster.update();
    most_held = std::max(most_held, one.activation);
    cost.all.forward += one.forward;
    cost.all.backward += one.backward;
    cost.all.gradient_sync += one.gradient_sync;
    cost.all.optimizer_step += one.optimizer_step;
    cost.all.parameters += one.parameters;
    cost.all.gradients += one.gradients;
    cost.all.optimizer_state += one.optimizer_state;
    cost.all.transient = std::max(cost.all.transient, one.transient);
    cost.all.activation += one.activation;
    cost.all.gradient_volume += one.gradient_volume;
    cost.all.provenance = std::max(cost.all.provenance, one.provenance);
    cost.chunks.push_back(one);
  }
  cost.all.transient = std::max(cost.all.transient, update - most_held);
  return cost;
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
  const double exposed = seconds_beside(sync.as_double(), kSyncOverlap * backward.as_double());
  return Nanoseconds(static_cast<std::int64_t>(std::ceil(exposed)));
}

Nanoseconds replica_sync(Bytes volume, int replicas, const cluster::Link& link, int members) {
  if (replicas <= 1 || volume <= Bytes(0)) return Nanoseconds(0);
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
