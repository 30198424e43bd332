#include "tangram/evolve/refit.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "fleet_gpus.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cluster/slowest.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/given_plan.hpp"
#include "tangram/plan/gpu_places.hpp"
#include "tangram/plan/zero_bubble.hpp"

namespace tangram::evolve {

namespace {

std::vector<Gpu> gone_gpus(const plan::LaunchPlan& plan, const FleetGpus& gpus) {
  std::vector<Gpu> gone;
  for (const plan::Rank& rank : plan.ranks) {
    if (!gpus.find({rank.host, rank.gpu})) gone.emplace_back(rank.host, rank.gpu);
  }
  std::ranges::sort(gone);
  return gone;
}

/// Every layer once, in order: what pricing takes for granted and a file need not keep to.
bool is_chain(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline) {
  int next = 0;
  for (std::size_t c = 0; c < plan.chunks(); ++c) {
    for (const int id : pipeline.stages) {
      const model::BlockRange& chunk = plan.stage(id).chunks[c];
      if (chunk.first != next) return false;
      next = chunk.last;
    }
  }
  return next == plan.pipelined().block_count();
}

/// What all GPUs of a part can be relied on for.
struct Common {
  cluster::GpuType device;
  cluster::Link link;
  cluster::Link network;
};

/// The fleet in which all hosts of each part are as good as the least of them.
cluster::Fleet evened(const plan::LaunchPlan& plan, const cluster::Fleet& fleet) {
  cluster::Fleet even = fleet;
  const FleetGpus gpus(fleet);
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      std::vector<std::pair<cluster::Node*, cluster::DeviceGroup*>> places;
      for (int i = 0; i < part.strategy.degrees.gpus(); ++i) {
        const plan::Rank& rank = plan.rank(part, i);
        const FleetGpus::Where where = gpus.at({rank.host, rank.gpu});
        places.emplace_back(&even.nodes[where.node], &even.nodes[where.node].groups[where.group]);
      }
      Common least{places.front().second->device, places.front().second->link, places.front().first->network};
      for (const auto& [node, group] : places) {
        least = {cluster::slower_of(least.device, group->device), cluster::slower_of(least.link, group->link),
                 cluster::slower_of(least.network, node->network)};
      }
      for (const auto& [node, group] : places) {
        std::tie(group->device, group->link, node->network) = std::tie(least.device, least.link, least.network);
      }
    }
  }
  return even;
}

/// A plan's parts on one level of islands.
struct Located {
  std::size_t level = 0;
  std::vector<std::vector<std::vector<plan::PlacedPart>>> placed;  ///< [pipeline][stage][part]
  std::vector<std::vector<std::vector<plan::Spread>>> spread;
  /// Parts over several classes, whether it is another level than the plan was made on, parts over several islands.
  std::tuple<int, bool, int> unsuited{0, false, 0};
};

class Locator {
 public:
  Locator(const plan::LaunchPlan& plan, const cluster::Fleet& fleet) : plan_(plan), gpus_(fleet) {}

  [[nodiscard]] Located at(const cluster::IslandLevel& level, std::size_t number) const {
    const plan::GpuPlaces places(level);
    Located located;
    located.level = number;
    int split = 0;
    int spilling = 0;
    for (const plan::Pipeline& pipeline : plan_.pipelines) {
      auto& placed = located.placed.emplace_back();
      auto& spread = located.spread.emplace_back();
      for (const int id : pipeline.stages) {
        placed.emplace_back();
        spread.emplace_back();
        for (const plan::Part& part : plan_.stage(id).parts) {
          placed.back().push_back(placed_of(part));
          spread.back().push_back(plan::locate(placed.back().back(), places));
          split += spread.back().back().classes.size() > 1 ? 1 : 0;
          spilling += spread.back().back().spills ? 1 : 0;
        }
      }
    }
    located.unsuited = {split, level.name != plan_.provenance.level, spilling};
    return located;
  }

  /// The level that suits the plan best, the finest of those that suit alike.
  [[nodiscard]] Located best(const cluster::IslandHierarchy& hierarchy) const {
    Located best = at(hierarchy.levels.front(), 0);
    for (std::size_t i = 1; i < hierarchy.levels.size(); ++i) {
      Located other = at(hierarchy.levels[i], i);
      if (other.unsuited < best.unsuited) best = std::move(other);
    }
    return best;
  }

 private:
  [[nodiscard]] plan::PlacedPart placed_of(const plan::Part& part) const {
    plan::PlacedPart placed;
    for (int i = 0; i < part.strategy.degrees.gpus(); ++i) {
      const plan::Rank& rank = plan_.rank(part, i);
      placed.gpus.push_back({gpus_.at({rank.host, rank.gpu}).node, rank.gpu, 0});
    }
    return placed;
  }

  const plan::LaunchPlan& plan_;
  FleetGpus gpus_;
};

/// Classes that a part lies in all the same, because their links differ, answer for each other: the least of each, and
/// the slowest link between them.
void join_classes(const std::set<int>& numbers, cluster::IslandLevel& level) {
  const auto of = [&](int number) -> cluster::IslandClass& { return at(level.classes, number); };
  cluster::IslandClass common = of(*numbers.begin());
  for (const int a : numbers) {
    common.device = cluster::slower_of(common.device, of(a).device);
    common.inside_member = cluster::slower_of(common.inside_member, of(a).inside_member);
    common.between_members = cluster::slower_of(common.between_members, of(a).between_members);
    common.between_islands = cluster::slower_of(common.between_islands, of(a).between_islands);
    common.price_per_gpu_hour = std::max(common.price_per_gpu_hour, of(a).price_per_gpu_hour);
    for (const int b : numbers) {
      if (a != b) common.between_islands = cluster::slower_of(common.between_islands, level.link(a, b));
    }
  }
  for (const int a : numbers) {
    cluster::IslandClass& its_class = of(a);
    its_class.alias = common.alias;
    its_class.device = common.device;
    its_class.inside_member = common.inside_member;
    its_class.between_members = common.between_members;
    its_class.between_islands = common.between_islands;
    its_class.price_per_gpu_hour = common.price_per_gpu_hour;
  }
}

void join_split_classes(const Located& located, cluster::IslandLevel& level) {
  for (const auto& pipeline : located.spread) {
    for (const auto& stage : pipeline) {
      for (const plan::Spread& spread : stage) {
        if (spread.classes.size() > 1) join_classes(spread.classes, level);
      }
    }
  }
}

class Refitter {
 public:
  Refitter(const plan::LaunchPlan& old, const cluster::Fleet& fleet, const model::Model& model,
           const RefitOptions& options)
      : old_(old), fleet_(fleet), model_(model), options_(options) {}

  Refit run() {
    if (!same_model(old_.model, model_)) {
      result_.incompatibilities.push_back({"other-model", "", "the plan is of another model"});
    } else if (const std::string change = job_change(old_.model, model_); !change.empty()) {
      result_.incompatibilities.push_back({"other-job", "", "the job has " + change});
    }
    for (const plan::Pipeline& pipeline : old_.pipelines) {
      if (is_chain(old_, pipeline)) continue;
      result_.incompatibilities.push_back({"broken-chain", "pipeline " + std::to_string(pipeline.id),
                                           "its stages do not hold every layer once, in order"});
    }
    result_.gone = gone_gpus(old_, FleetGpus(fleet_));
    if (result_.incompatibilities.empty() && result_.gone.empty()) price();
    return std::move(result_);
  }

 private:
  void price() {
    cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet_, options_.island_tolerance);
    const Locator locator(old_, fleet_);
    Located located = locator.best(hierarchy);
    if (std::get<0>(located.unsuited) > 0) {
      hierarchy = cluster::find_islands(evened(old_, fleet_), options_.island_tolerance);
      located = locator.best(hierarchy);
    }
    cluster::IslandLevel& level = hierarchy.levels[located.level];
    join_split_classes(located, level);

    std::vector<plan::GivenPlacement> pipelines;
    for (std::size_t p = 0; p < old_.pipelines.size(); ++p) pipelines.push_back(given(p, located, level));
    auto plan = plan::given_plan(pipelines, encoders(), old_.runtime, fleet_, level, model_, options_.profiles);
    if (plan) return finish(std::move(*plan));
    const int stage = old_.pipelines[plan.error().pipeline].stages[plan.error().stage];
    result_.incompatibilities.push_back({"unsupported", "stage " + std::to_string(stage), plan.error().why});
  }

  [[nodiscard]] plan::GivenPlacement given(std::size_t p, const Located& located,
                                           const cluster::IslandLevel& level) const {
    const plan::Pipeline& from = old_.pipelines[p];
    plan::GivenPlacement given{{1, from.microbatch, from.microbatches, {}}, {}, from.samples};
    given.pipeline.group = old_.group;
    for (std::size_t s = 0; s < from.stages.size(); ++s) {
      const plan::Stage& stage = old_.stage(from.stages[s]);
      given.add_stage(stage.chunks, stage.warmup + 1);
      for (std::size_t i = 0; i < stage.parts.size(); ++i) {
        const plan::Part& part = stage.parts[i];
        const plan::PlacedPart& placed = located.placed[p][s][i];
        // Its ranks are counted to the island of its first GPU.
        const int island_class = at(level.islands, placed.gpus.front().island).island_class;
        compose::GivenPart as_given;
        as_given.island_class = island_class;
        as_given.samples = part.samples;
        as_given.strategy = part.strategy;
        as_given.parallelizer = part.parallelizer;
        as_given.opaque = part.opaque;
        given.add_part(std::move(as_given), placed, level, located.spread[p][s][i].spills);
      }
    }
    return given;
  }

  /// Colocated ones.
  [[nodiscard]] std::optional<compose::GivenEncoders> encoders() const {
    if (!old_.colocated) return std::nullopt;
    compose::GivenEncoders given{old_.colocated->turns, {}};
    for (const auto& encoder : old_.colocated->encoders) given.layouts.push_back(encoder.layout);
    return given;
  }

  /// As many weight gradients as before, where memory holds them.
  void put_off(plan::LaunchPlan& plan) {
    std::vector<std::int64_t> most;
    for (const plan::Pipeline& pipeline : old_.pipelines) {
      for (const int id : pipeline.stages) most.push_back(old_.stage(id).put_off);
    }
    if (plan::put_off_weight_gradients(plan)) {
      plan::limit_put_off(plan, most);
    } else {
      result_.incompatibilities.push_back(
          {"memory-exceeded", "plan", "no stage has the memory for weight gradients that are put off"});
    }
    plan.targets = plan::target_verdicts(plan);
  }

  void finish(plan::LaunchPlan plan) {
    if (old_.zero_bubble) put_off(plan);
    plan.provenance.version = old_.provenance.version;
    plan.provenance.inputs = {{"cluster", fleet_.digest}, {"model", model_.digest}};
    plan.provenance.objective = old_.provenance.objective;
    plan.provenance.options = old_.provenance.options;
    for (plan::IdleGpus& idle : plan.idle) idle.reason = idle_reason(idle);
    for (const plan::Violation& v : plan::check(plan, fleet_, nullptr).violations) {
      result_.incompatibilities.push_back({v.code, v.where, v.message});
    }
    result_.plan = std::move(plan);
  }

  /// As long as the same GPUs are idle, the old reason holds.
  [[nodiscard]] std::string idle_reason(const plan::IdleGpus& idle) const {
    for (const plan::IdleGpus& before : old_.idle) {
      if (before.island_class == idle.island_class && before.gpus == idle.gpus) return before.reason;
    }
    return "not used by the plan";
  }

  const plan::LaunchPlan& old_;
  const cluster::Fleet& fleet_;
  const model::Model& model_;
  const RefitOptions& options_;
  Refit result_;
};

}  // namespace

Refit refit(const plan::LaunchPlan& old, const cluster::Fleet& fleet, const model::Model& model,
            const RefitOptions& options) {
  return Refitter(old, fleet, model, options).run();
}

}  // namespace tangram::evolve
