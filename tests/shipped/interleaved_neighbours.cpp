#include "shipped/interleaved_neighbours.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shipped/runtime_rules.hpp"
#include "tangram/compose/given.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/runtime/runtime.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::shipped {
namespace {

constexpr runtime::Target kTarget = runtime::Target::kMegatron;

/// What a neighbour may have otherwise.
struct InterleavedPlan {
  compose::GivenPipeline given;  ///< places and strategies; layers are those of `blocks`
  std::vector<int> blocks;       ///< [stage]
  int chunks = 2;
};

/// The layers of all chunks in a row: as even as they go, the larger chunks of a stage last.
void lay_out(InterleavedPlan& plan) {
  for (compose::GivenStage& stage : plan.given.stages) stage.chunks.clear();
  int first = 0;
  for (int c = 0; c < plan.chunks; ++c) {
    for (std::size_t s = 0; s < plan.blocks.size(); ++s) {
      const int larger = plan.blocks[s] % plan.chunks;  // so many chunks have a block more
      const int last = first + plan.blocks[s] / plan.chunks + (c >= plan.chunks - larger ? 1 : 0);
      plan.given.stages[s].chunks.push_back({first, last});
      first = last;
    }
  }
}

class InterleavedNeighbourhood {
 public:
  InterleavedNeighbourhood(const cluster::Fleet& fleet, const model::Model& model, const cluster::IslandLevel& level)
      : fleet_(fleet), model_(model), level_(level) {}

  BestNeighbour of(const compose::Composition& best) {
    const InterleavedPlan base = plan_of(best);
    result_.own = result_.time = time_of(best).value_or(Nanoseconds::max());
    result_.priced = time_of(base).value_or(Nanoseconds::max());
    for (std::size_t s = 0; s + 1 < base.blocks.size(); ++s) move_cuts(base, s);
    exchange_stages(base);
    regroup(base);
    other_chunks(base);
    other_microbatches(base);
    return result_;
  }

  [[nodiscard]] std::optional<Nanoseconds> time_of(const compose::Composition& composition) const {
    if (!is_placeable(composition, level_)) return std::nullopt;
    plan::LaunchPlan plan = plan::assemble(composition, fleet_, level_, model_);
    plan.runtime = kTarget;
    if (!plan::reasons_against(plan, kTarget).empty()) return std::nullopt;
    for (const plan::Stage& stage : plan.stages) {
      for (const plan::Part& part : stage.parts) {
        if (part.predicted.peak_memory > part.predicted.usable_memory) return std::nullopt;
      }
    }
    const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
    return result.deadlock ? std::nullopt : std::optional(result.iteration);
  }

 private:
  [[nodiscard]] InterleavedPlan plan_of(const compose::Composition& composition) const {
    InterleavedPlan plan{as_given(composition, level_), {}, composition.chunks};
    plan.given.group = composition.group;
    for (const compose::StageChoice& stage : composition.stages) {
      plan.blocks.push_back(
          std::accumulate(stage.chunks.begin(), stage.chunks.end(), 0,
                          [](int sum, const model::BlockRange& chunk) { return sum + chunk.count(); }));
    }
    return plan;
  }

  [[nodiscard]] std::optional<Nanoseconds> time_of(InterleavedPlan plan) const {
    if (std::ranges::any_of(plan.blocks, [&](int blocks) { return blocks < plan.chunks; })) return std::nullopt;
    lay_out(plan);
    const auto stages = std::ssize(plan.given.stages);
    const std::int64_t passes = plan.given.microbatches * plan.chunks;
    for (std::int64_t s = 0; s < stages; ++s) {
      compose::GivenStage& stage = plan.given.stages[static_cast<std::size_t>(s)];
      stage.in_flight = std::min(2 * (stages - 1 - s) + (plan.chunks - 1) * plan.given.group + 1, passes);
      cost::MemoryPolicy& policy = stage.parts.front().strategy.policy;
      if (policy.recompute == cost::RecomputeMode::kFull)
        policy.recompute_layers = plan.blocks[static_cast<std::size_t>(s)];
    }
    const auto priced = compose::price(plan.given, model_, level_, nullptr);
    return priced ? time_of(*priced) : std::nullopt;
  }

  void judge(const std::string& change, InterleavedPlan plan) {
    const auto time = time_of(std::move(plan));
    if (!time) return;
    ++result_.tried;
    if (*time >= result_.time) return;
    result_.time = *time;
    result_.change = change;
  }

  void move_cuts(const InterleavedPlan& base, std::size_t stage) {
    for (const int blocks : {-2, -1, 1, 2}) {
      InterleavedPlan plan = base;
      plan.blocks[stage] += blocks;
      plan.blocks[stage + 1] -= blocks;
      judge(std::to_string(blocks) + " blocks over the cut behind stage " + std::to_string(stage), std::move(plan));
    }
  }

  void exchange_stages(const InterleavedPlan& base) {
    for (std::size_t s = 0; s < base.blocks.size(); ++s) {
      for (std::size_t t = s + 1; t < base.blocks.size(); ++t) {
        InterleavedPlan plan = base;
        std::swap(plan.given.stages[s], plan.given.stages[t]);
        const std::string change = "stages " + std::to_string(s) + " and " + std::to_string(t) + " exchanged";
        judge(change, plan);
        std::swap(plan.blocks[s], plan.blocks[t]);
        judge(change + " with their layers", std::move(plan));
      }
    }
  }

  void regroup(const InterleavedPlan& base) {
    for (std::int64_t group = 2; group <= std::min<std::int64_t>(base.given.microbatches, 64); ++group) {
      InterleavedPlan plan = base;
      plan.given.group = group;
      judge("groups of " + std::to_string(group), std::move(plan));
    }
  }

  void other_chunks(const InterleavedPlan& base) {
    for (const int chunks : {2, 3, 4, 6, 8}) {
      InterleavedPlan plan = base;
      plan.chunks = chunks;
      judge(std::to_string(chunks) + " chunks", std::move(plan));
    }
  }

  void other_microbatches(const InterleavedPlan& base) {
    const compose::GivenPipeline& given = base.given;
    const std::int64_t samples = given.microbatch * given.microbatches;
    for (const std::int64_t size : {given.microbatch / 2, given.microbatch * 2}) {
      if (size < 1 || samples % size != 0) continue;
      InterleavedPlan plan = base;
      plan.given.microbatch = size;
      plan.given.microbatches = samples / size;
      bool divides = true;
      for (compose::GivenStage& stage : plan.given.stages) {
        stage.parts.front().samples = size;
        divides = divides && size % stage.parts.front().strategy.degrees.dp == 0;
      }
      if (divides) judge("microbatches of " + std::to_string(size), std::move(plan));
    }
  }

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  const cluster::IslandLevel& level_;
  BestNeighbour result_;
};

}  // namespace

std::optional<BestNeighbour> neighbour_of_best_interleaved(const cluster::Fleet& fleet, const model::Model& model) {
  const cluster::IslandHierarchy hierarchy = islands_of(fleet);
  // Among plans of all schedules: those of others bound the search, which takes far longer without them.
  const compose::SearchResult found = search_for({fleet, model, kTarget}, hierarchy, std::nullopt);
  const compose::Composition* best = nullptr;
  Nanoseconds least = Nanoseconds::max();
  const std::vector<compose::Composition> shortlist = found.shortlist();
  const auto level_of = [&](const compose::Composition& plan) -> const cluster::IslandLevel& {
    return hierarchy.levels[static_cast<std::size_t>(plan.level)];
  };
  for (const compose::Composition& each : shortlist) {
    if (each.chunks < 2) continue;
    const auto time = InterleavedNeighbourhood(fleet, model, level_of(each)).time_of(each);
    if (!time || *time >= least) continue;
    least = *time;
    best = &each;
  }
  if (best == nullptr) return std::nullopt;
  return InterleavedNeighbourhood(fleet, model, level_of(*best)).of(*best);
}

}  // namespace tangram::shipped
