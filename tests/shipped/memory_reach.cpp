#include "shipped/memory_reach.hpp"

#include <algorithm>
#include <limits>

namespace tangram::shipped {
namespace {

constexpr int kNothing = std::numeric_limits<int>::max();

void add_expert_ways(const model::Model& model, const cluster::DeviceShape& shape, int samples,
                     const cost::Degrees& dense, std::vector<cost::UnitCosts>& out) {
  const bool experts = std::any_of(model.types.begin(), model.types.end(),
                                   [](const model::BlockType& block) { return block.feed_forward.is_moe(); });
  for (const int etp : {1, dense.tp}) {
    for (int ep = 1; ep * etp <= dense.gpus(); ++ep) {
      if (dense.gpus() % (ep * etp) != 0) continue;
      cost::Degrees degrees = dense;
      degrees.ep = ep;
      degrees.etp = etp;
      if (auto units = cost::unit_costs(model, shape, degrees, samples)) out.push_back(*std::move(units));
      if (!experts) return;
    }
    if (dense.tp == 1) return;
  }
}

/// How few blocks can be left with the GPUs of `used` taken, by number of stages.
using Left = std::vector<int>;

/// All ways to take GPUs out of the classes, as one number per class.
class Usage {
 public:
  explicit Usage(const std::vector<cluster::IslandClass>& classes) {
    for (const cluster::IslandClass& c : classes) {
      strides_.push_back(size_);
      counts_.push_back(c.gpu_count());
      size_ *= static_cast<std::size_t>(c.gpu_count()) + 1;
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int used(std::size_t state, std::size_t k) const {
    return static_cast<int>(state / strides_[k] % (static_cast<std::size_t>(counts_[k]) + 1));
  }
  [[nodiscard]] int left(std::size_t state, std::size_t k) const { return counts_[k] - used(state, k); }
  [[nodiscard]] std::size_t with(std::size_t state, std::size_t k, int gpus) const {
    return state + strides_[k] * static_cast<std::size_t>(gpus);
  }

 private:
  std::size_t size_ = 1;
  std::vector<std::size_t> strides_;
  std::vector<int> counts_;
};

std::optional<ChainFound> mixed_chain_at(const model::Model& model, const cluster::IslandLevel& level,
                                         std::int64_t microbatch, const std::vector<Bytes>& needed) {
  const std::vector<cluster::IslandClass>& classes = level.classes;
  const Usage usage(classes);
  StageReach reach(model, classes, microbatch);
  std::vector<std::vector<int>> sizes;
  for (const cluster::IslandClass& c : classes) sizes.push_back(stage_sizes(c));
  std::vector<Left> left(usage.size(), Left{});
  left[0] = {model.block_count()};
  for (std::size_t state = 0; state < usage.size(); ++state) {
    Bytes room{0};
    for (std::size_t k = 0; k < classes.size(); ++k) room += classes[k].device.usable() * usage.left(state, k);
    for (std::size_t stages = 0; stages < left[state].size(); ++stages) {
      const int last = left[state][stages];
      // What does not fit even without activations needs no further look.
      if (last == kNothing || needed[static_cast<std::size_t>(last)] > room) continue;
      const auto in_flight = std::min<std::int64_t>(reach.microbatches(), static_cast<std::int64_t>(stages) + 1);
      for (std::size_t k = 0; k < classes.size(); ++k) {
        for (const int gpus : sizes[k]) {
          if (gpus > usage.left(state, k)) break;
          const int first = reach.first_block(k, gpus, in_flight, last);
          if (first == last) continue;
          if (first == 0) return ChainFound{microbatch, static_cast<int>(stages) + 1};
          Left& next = left[usage.with(state, k, gpus)];
          if (next.size() <= stages + 1) next.resize(stages + 2, kNothing);
          next[stages + 1] = std::min(next[stages + 1], first);
        }
      }
    }
    Left{}.swap(left[state]);
  }
  return std::nullopt;
}

int gpus_of(const cluster::IslandLevel& level) {
  int gpus = 0;
  for (const cluster::IslandClass& c : level.classes) gpus += c.gpu_count();
  return gpus;
}

}  // namespace

std::vector<cost::UnitCosts> ways_to_run(const model::Model& model, const cluster::DeviceShape& shape, int samples) {
  std::vector<cost::UnitCosts> out;
  for (int tp = 1; tp <= shape.per_node; ++tp) {
    if (shape.per_node % tp != 0) continue;
    for (int cp = 1; tp * cp <= shape.gpus(); cp *= 2) {
      if (shape.gpus() % (tp * cp) != 0) continue;
      cost::Degrees degrees;
      degrees.tp = tp;
      degrees.cp = cp;
      degrees.dp = shape.gpus() / (tp * cp);
      if (samples % degrees.dp != 0) continue;
      add_expert_ways(model, shape, samples, degrees, out);
      if (tp == 1) continue;
      degrees.sequence_parallel = true;
      add_expert_ways(model, shape, samples, degrees, out);
    }
  }
  return out;
}

std::vector<int> stage_sizes(const cluster::IslandClass& island_class) {
  std::vector<int> sizes;
  for (int gpus = 1; gpus < island_class.gpus_per_member; ++gpus) {
    if (island_class.gpus_per_member % gpus == 0) sizes.push_back(gpus);
  }
  for (int members = 1; members <= island_class.member_count(); ++members) {
    sizes.push_back(members * island_class.gpus_per_member);
  }
  return sizes;
}

std::vector<std::int64_t> microbatches(const model::Job& job, int gpus) {
  if (job.microbatch > 0) return {job.microbatch};
  std::vector<std::int64_t> sizes;
  for (std::int64_t b = 1; b <= std::min<std::int64_t>(job.global_batch, gpus); ++b) {
    if (job.global_batch % b == 0) sizes.push_back(b);
  }
  return sizes;
}

StageReach::StageReach(const model::Model& model, const std::vector<cluster::IslandClass>& classes,
                       std::int64_t microbatch)
    : model_(model), classes_(classes), microbatch_(microbatch) {}

const std::vector<cost::UnitCosts>& StageReach::ways(std::size_t island_class, int gpus) {
  const auto [entry, created] = ways_.try_emplace({island_class, gpus});
  if (created) {
    const cluster::DeviceShape shape = cluster::make_shape(classes_[island_class], gpus);
    entry->second = ways_to_run(model_, shape, static_cast<int>(microbatch_));
  }
  return entry->second;
}

int StageReach::first_block(std::size_t island_class, int gpus, std::int64_t in_flight, int last) {
  const auto key = std::tuple(island_class, gpus, in_flight, last);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const Bytes usable = classes_[island_class].device.usable();
  int best = last;
  for (const cost::UnitCosts& units : ways(island_class, gpus)) {
    for (int zero = 0; zero <= 3 && best > 0; ++zero) best = extend(units, zero, usable, in_flight, last, best);
  }
  return known_[key] = best;
}

// Only reaches beyond `best` matter. Memory grows with every block but for the buffers of the lower cut, whose size
// depends on where it is; only static memory is certain to grow.
int StageReach::extend(const cost::UnitCosts& units, int zero, Bytes usable, std::int64_t in_flight, int last,
                       int best) const {
  int reached = best;
  for (int first = best - 1; first >= 0; --first) {
    const model::SliceSignature slice = model::signature(model_, first, last);
    if (!units.unsupported.of(slice).empty()) break;
    bool state_fits = false;
    for (const auto mode :
         {model::RecomputeMode::kFull, model::RecomputeMode::kSelective, model::RecomputeMode::kNone}) {
      const cost::StageCost cost = cost::stage_cost(units, slice, {zero, mode, last - first});
      state_fits = cost.static_memory() <= usable;
      if (!state_fits) break;
      if (cost.peak(in_flight) > usable) continue;
      reached = first;
      break;
    }
    if (!state_fits) break;
    // Two blocks beyond the last one that fits: cuts of one kind differ in nothing but the embedding.
    if (model_.types.size() == 1 && first < reached - 2 && first > 0) first = 1;
  }
  return reached;
}

std::optional<ChainFound> uniform_chain(const model::Model& model, const cluster::IslandClass& island_class) {
  const std::vector<cluster::IslandClass> classes{island_class};
  for (const std::int64_t b : microbatches(model.job, island_class.gpu_count())) {
    StageReach reach(model, classes, b);
    for (const int gpus : stage_sizes(island_class)) {
      int last = model.block_count();
      const int most = island_class.gpu_count() / gpus;
      for (int stages = 1; stages <= most; ++stages) {
        const int first = reach.first_block(0, gpus, std::min<std::int64_t>(reach.microbatches(), stages), last);
        if (first == last) break;
        if (first == 0) return ChainFound{b, stages};
        last = first;
      }
    }
  }
  return std::nullopt;
}

cluster::IslandClass weakest_of(const cluster::IslandLevel& level) {
  const auto less = [](const cluster::IslandClass& a, const cluster::IslandClass& b) {
    return a.device.usable() < b.device.usable();
  };
  cluster::IslandClass weakest = *std::min_element(level.classes.begin(), level.classes.end(), less);
  for (const cluster::IslandClass& c : level.classes) {
    weakest.gpus_per_member = std::min(weakest.gpus_per_member, c.gpus_per_member);
  }
  weakest.members_per_island = gpus_of(level) / weakest.gpus_per_member;
  weakest.islands = {0};
  return weakest;
}

std::optional<ChainFound> mixed_chain(const model::Model& model, const cluster::IslandLevel& level) {
  std::vector<Bytes> needed;
  for (int last = 0; last <= model.block_count(); ++last) needed.push_back(least_state(model, last));
  Bytes room{0};
  for (const cluster::IslandClass& c : level.classes) room += c.device.usable() * c.gpu_count();
  if (needed.back() > room) return std::nullopt;
  for (const std::int64_t b : microbatches(model.job, gpus_of(level))) {
    if (auto found = mixed_chain_at(model, level, b, needed)) return found;
  }
  return std::nullopt;
}

Bytes least_state(const model::Model& model, int last) {
  const model::Job& job = model.job;
  const std::int64_t per_parameter = job.parameter_bytes + job.gradient_bytes + job.optimizer.state_bytes_per_parameter;
  std::int64_t parameters = 0;
  if (last == model.block_count()) {
    parameters = model.total_parameters();
  } else if (last > 0) {
    parameters = model.embedding_parameters();
    for (int i = 0; i < last; ++i) parameters += model::parameters(model.block(i)).total();
  }
  return Bytes(parameters * per_parameter);
}

}  // namespace tangram::shipped
