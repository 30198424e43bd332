#include "shipped/uniform_plans.hpp"

#include <algorithm>

#include "shipped/memory_reach.hpp"

namespace tangram::shipped {
namespace {

constexpr std::int64_t kShortestChunk = 1024;  // tokens; context parallelism of the searched space stops there

/// Everything a uniform plan is made of.
struct Choice {
  int gpus = 0;  ///< of a stage
  int stages = 1;
  int replicas = 1;
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  cost::MemoryPolicy policy;  ///< recompute_layers: every block where it is full
  bool remainder_first = true;
};

/// How two stages of `gpus` GPUs in one class reach each other: through the member they share when there is no other,
/// else over the member's link to the next one, of which a part of a member has its part.
cluster::Link link_of(const cluster::IslandClass& c, int gpus) {
  cluster::Link link;
  if (c.member_count() == 1) {
    link = c.inside_member;
    link.bandwidth = link.bandwidth * static_cast<double>(gpus);
    return link;
  }
  link = c.islands.size() > 1 ? c.between_islands : c.between_members;
  if (gpus < c.gpus_per_member) link.bandwidth = link.bandwidth * (static_cast<double>(gpus) / c.gpus_per_member);
  return link;
}

std::vector<std::pair<int, int>> near_equal(int blocks, int stages, bool remainder_first) {
  std::vector<std::pair<int, int>> ranges;
  int first = 0;
  for (int s = 0; s < stages; ++s) {
    const int place = remainder_first ? s : stages - 1 - s;
    const int last = first + blocks / stages + (place < blocks % stages ? 1 : 0);
    ranges.emplace_back(first, last);
    first = last;
  }
  return ranges;
}

class Trial {
 public:
  Trial(const model::Model& model, const cluster::IslandClass& c) : model_(model), class_(c) {}

  std::optional<std::int64_t> time(const cost::UnitCosts& units, const Choice& choice) const {
    const cluster::Link link = link_of(class_, choice.gpus);
    const int members = std::max(1, choice.gpus / class_.gpus_per_member);
    std::vector<TimedStage> stages;
    std::int64_t latency = 0;
    std::int64_t occupancy = 0;
    for (const auto& [first, last] : near_equal(model_.block_count(), choice.stages, choice.remainder_first)) {
      cost::MemoryPolicy policy = choice.policy;
      if (policy.recompute == model::RecomputeMode::kFull) policy.recompute_layers = last - first;
      const model::SliceSignature slice = model::signature(model_, first, last);
      const cost::StageCost cost = cost::stage_cost(units, slice, policy);
      const std::int64_t most = cost::max_in_flight(cost, class_.device.usable());
      if (most < 1) return std::nullopt;
      Nanoseconds sync = cost.gradient_sync;
      if (choice.replicas > 1) sync += cost::replica_sync(cost.gradient_volume, choice.replicas, link, members);
      if (slice.tied_elsewhere) sync += tied_sync(link, members);
      stages.push_back({cost.forward.value(), cost.backward.value(), cost::exposed_sync(sync, cost.backward).value(),
                        cost.optimizer_step.value(), most});
      if (last == model_.block_count()) continue;
      const Bytes bytes(model::cut_bytes(model_, last) * choice.microbatch);
      const cost::BoundaryCost hop = cost::boundary_cost(bytes, link, members, choice.gpus, members, choice.gpus);
      latency = std::max(latency, hop.latency.value());
      occupancy = std::max(occupancy, hop.occupancy.value());
    }
    return pipeline_time(stages, latency, occupancy, choice.microbatches);
  }

 private:
  /// The two ends of a tied embedding add up their gradients.
  [[nodiscard]] Nanoseconds tied_sync(const cluster::Link& link, int members) const {
    const std::int64_t width = model_.embedding_projection > 0 ? model_.embedding_projection : model_.hidden;
    return cost::replica_sync(Bytes(model_.vocabulary * width * model_.job.gradient_bytes), 2, link, members);
  }

  const model::Model& model_;
  const cluster::IslandClass& class_;
};

bool in_space(const model::Model& model, const cost::Degrees& degrees) {
  if (degrees.cp == 1) return true;
  return std::all_of(model.types.begin(), model.types.end(),
                     [&](const model::BlockType& block) { return block.tokens / (2 * degrees.cp) >= kShortestChunk; });
}

std::string describe(const Choice& choice, const cost::Degrees& d) {
  const auto n = [](auto value) { return std::to_string(value); };
  return n(choice.replicas) + " pipelines of " + n(choice.stages) + " stages of " + n(choice.gpus) + " GPUs, b " +
         n(choice.microbatch) + ", tp " + n(d.tp) + (d.sequence_parallel ? " sp" : "") + ", cp " + n(d.cp) + ", dp " +
         n(d.dp) + ", ep " + n(d.ep) + ", etp " + n(d.etp) + ", ZeRO-" + n(choice.policy.zero) + ", recompute " +
         n(static_cast<int>(choice.policy.recompute));
}

/// Calls visit(policy) for every ZeRO stage that shards something, and every recompute mode.
template <class Visit>
void for_each_policy(const cost::UnitCosts& units, Visit visit) {
  const bool shards = units.groups.data.size() > 1 || units.groups.expert_data.size() > 1;
  for (int zero = 0; zero <= (shards ? 3 : 0); ++zero) {
    for (const auto mode :
         {model::RecomputeMode::kNone, model::RecomputeMode::kSelective, model::RecomputeMode::kFull}) {
      visit(cost::MemoryPolicy{zero, mode, 0});
    }
  }
}

/// Powers of two of a member's GPUs, powers of two of members, and all of them.
std::vector<int> usual_sizes(const cluster::IslandClass& c) {
  std::vector<int> sizes;
  for (const int gpus : stage_sizes(c)) {
    const int members = gpus / c.gpus_per_member;
    const int value = members >= 1 ? members : gpus;
    if ((value & (value - 1)) == 0 || members == c.member_count()) sizes.push_back(gpus);
  }
  return sizes;
}

}  // namespace

// The in-flight recursion at one period: a stage holds what a round trip through the stages behind it takes.
std::optional<std::int64_t> pipeline_time(const std::vector<TimedStage>& stages, std::int64_t latency,
                                          std::int64_t occupancy, std::int64_t microbatches) {
  const auto count = static_cast<std::int64_t>(stages.size());
  std::int64_t total = 2 * latency * (count - 1);
  std::int64_t shortest = count > 1 ? std::max<std::int64_t>(1, occupancy) : 1;
  std::int64_t tail = 0;
  std::int64_t step = 0;
  std::int64_t before = 0;
  for (const TimedStage& s : stages) {
    total += s.forward + s.backward;
    shortest = std::max(shortest, s.forward + s.backward);
    tail = std::max(tail, s.exposed - before);
    before += s.backward + latency;
    step = std::max(step, s.step);
  }
  const auto holds = [&](std::int64_t period) {
    std::int64_t n = 0;
    std::int64_t behind = 0;
    for (auto s = stages.rbegin(); s != stages.rend(); ++s) {
      const std::int64_t own = s->forward + s->backward;
      const std::int64_t round = s == stages.rbegin() ? own : own + 2 * latency + behind;
      n = std::max(n + 1, (round + period - 1) / period);
      if (std::min(n, microbatches) > s->most) return false;
      behind = std::max(period * (n - 1) + own, round);
    }
    return true;
  };
  std::int64_t longest = std::max(total, shortest);
  if (!holds(longest)) return std::nullopt;
  while (shortest < longest) {
    const std::int64_t middle = (shortest + longest) / 2;
    (holds(middle) ? longest : shortest) = holds(middle) ? middle : middle + 1;
  }
  return total + tail + (microbatches - 1) * longest + step;
}

std::optional<UniformPlan> fastest_uniform(const model::Model& model, const cluster::IslandLevel& level) {
  const cluster::IslandClass& c = level.classes.front();
  const Trial trial(model, c);
  std::optional<UniformPlan> best;
  std::int64_t tried = 0;
  for (const int gpus : usual_sizes(c)) {
    const cluster::DeviceShape shape = cluster::make_shape(c, gpus);
    for (std::int64_t b = 1; b <= model.job.global_batch; b *= 2) {
      if (model.job.global_batch % b != 0) break;
      for (const cost::UnitCosts& units : ways_to_run(model, shape, static_cast<int>(b))) {
        if (!in_space(model, units.degrees) || !units.unsupported.of_model().empty()) continue;
        for (int replicas = 1; replicas * gpus <= c.gpu_count(); replicas *= 2) {
          if (model.job.global_batch % (replicas * b) != 0) break;
          const int most = std::min(c.gpu_count() / (replicas * gpus), model.block_count());
          for (int stages = 1; stages <= most; ++stages) {
            for_each_policy(units, [&](const cost::MemoryPolicy& policy) {
              for (const bool remainder_first : {true, false}) {
                if (!remainder_first && model.block_count() % stages == 0) continue;
                const Choice choice{gpus,   stages,         replicas, b, model.job.global_batch / (replicas * b),
                                    policy, remainder_first};
                const auto time = trial.time(units, choice);
                ++tried;
                if (!time || (best && Nanoseconds(*time) >= best->time)) continue;
                best = UniformPlan{Nanoseconds(*time), describe(choice, units.degrees), 0};
              }
            });
          }
        }
      }
    }
  }
  if (best) best->tried = tried;
  return best;
}

}  // namespace tangram::shipped
