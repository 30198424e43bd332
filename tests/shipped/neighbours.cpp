#include "shipped/neighbours.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "shipped/memory_reach.hpp"
#include "shipped/runtime_rules.hpp"
#include "tangram/compose/given.hpp"
#include "tangram/compose/target.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/parallelizer/parallelizer.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::shipped {
namespace {

using compose::GivenPart;
using compose::GivenPipeline;
using compose::GivenStage;

/// GPUs of a class.
struct Place {
  int island_class = 0;
  int gpus = 0;
  auto operator<=>(const Place&) const = default;
};

Place place_of(const GivenPart& part) { return {part.island_class, part.shape.gpus()}; }
bool is_single(const GivenStage& stage) { return stage.parts.size() == 1; }

/// No stage holds more than the one before it, nor than M.
void make_falling(GivenPipeline& given) {
  std::int64_t most = given.microbatches;
  for (GivenStage& stage : given.stages) {
    stage.in_flight = std::max<std::int64_t>(1, std::min(stage.in_flight, most));
    most = stage.in_flight;
  }
}

/// Where shapes change, parts that shared a member may no longer fit into one.
void forget_members(GivenPipeline& given) {
  for (GivenStage& stage : given.stages) {
    for (GivenPart& part : stage.parts) part.member = compose::PartChoice::kAnyMember;
  }
}

/// GPUs of the shapes of each class of a level. The space names those of all levels in a row.
std::vector<std::vector<int>> shapes_at(int level, const cluster::IslandHierarchy& hierarchy,
                                        const compose::Space& space) {
  std::vector<std::vector<int>> shapes;
  auto named = space.shapes.begin();
  for (int l = 0; l <= level; ++l) {
    shapes.clear();
    for (const cluster::IslandClass& its_class : hierarchy.levels[static_cast<std::size_t>(l)].classes) {
      const bool is_named = named != space.shapes.end() && named->first == its_class.alias;
      shapes.push_back(is_named ? (named++)->second : stage_sizes(its_class));
    }
  }
  return shapes;
}

/// A change that may leave open which strategies the stages have that it touches.
struct Change {
  std::string name;
  GivenPipeline given;
  std::vector<std::size_t> open;
};

class Neighbourhood {
 public:
  Neighbourhood(const compose::Composition& composition, const Subject& subject,
                const cluster::IslandHierarchy& hierarchy, const compose::Space& space)
      : subject_(subject),
        semantics_(runtime::runtime_of(subject.target).semantics),
        model_(model_for(subject.target, subject.model, composition.replicas)),
        demands_(demands_near(subject.target, composition, model_)),
        level_(hierarchy.levels[static_cast<std::size_t>(composition.level)]),
        space_(space),
        base_(as_given(composition, level_)),
        enumerator_(parallelizer::make_enumerator(model_)),
        shapes_(shapes_at(composition.level, hierarchy, space)) {
    result_.own = result_.time = simulated(composition, semantics_.transfers);
  }

  BestNeighbour run() {
    if (const auto same = priced_with_members(base_)) result_.priced = simulated(*same, semantics_.transfers);
    for (std::size_t s = 0; s < base_.stages.size(); ++s) {
      other_strategies(s);
      other_places(s);
      split(s);
      more_or_fewer_in_flight(s);
      for (std::size_t t = s + 1; t < base_.stages.size(); ++t) exchange(s, t);
      if (s + 1 == base_.stages.size()) continue;
      for (const int blocks : {-2, -1, 1, 2}) move_cut(s, blocks);
      merge(s);
    }
    other_microbatches();
    other_replicas();
    return std::move(result_);
  }

 private:
  // ---- changes ----

  void other_strategies(std::size_t s) {
    const GivenStage& stage = base_.stages[s];
    for (std::size_t p = 0; p < stage.parts.size(); ++p) {
      for (const cost::Strategy& strategy : strategies(stage, p)) {
        GivenPipeline next = base_;
        next.stages[s].parts[p].strategy = strategy;
        try_all_in_flight("another strategy of stage " + std::to_string(s), next);
      }
    }
  }

  void other_places(std::size_t s) {
    if (!is_single(base_.stages[s])) return;
    for (const Place& place : places()) {
      Change change{"stage " + std::to_string(s) + " on " + name_of(place), base_, {s}};
      forget_members(change.given);
      set_place(change.given.stages[s], place);
      consider(std::move(change));
    }
  }

  void exchange(std::size_t s, std::size_t t) {
    if (!is_single(base_.stages[s]) || !is_single(base_.stages[t])) return;
    const Place a = place_of(base_.stages[s].parts.front());
    const Place b = place_of(base_.stages[t].parts.front());
    if (a == b) return;
    Change change{"stages " + std::to_string(s) + " and " + std::to_string(t) + " exchanged", base_, {s, t}};
    forget_members(change.given);
    set_place(change.given.stages[s], b);
    set_place(change.given.stages[t], a);
    consider(std::move(change));
  }

  void move_cut(std::size_t s, int blocks) {
    const int cut = base_.stages[s].last + blocks;
    if (cut <= base_.stages[s].first || cut >= base_.stages[s + 1].last) return;
    Change change{std::to_string(blocks) + " blocks over the cut behind stage " + std::to_string(s), base_, {s, s + 1}};
    change.given.stages[s].last = change.given.stages[s + 1].first = cut;
    consider(std::move(change));
  }

  void split(std::size_t s) {
    const GivenStage& stage = base_.stages[s];
    if (!is_single(stage)) return;
    const Place own = place_of(stage.parts.front());
    const auto put = [&](int cut, const Place& front, const Place& back) {
      Change change{
          "stage " + std::to_string(s) + " split into " + name_of(front) + " and " + name_of(back), base_, {s, s + 1}};
      auto& stages = change.given.stages;
      stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(s), stage);
      stages[s].last = stages[s + 1].first = cut;
      ++stages[s].in_flight;
      forget_members(change.given);
      set_place(stages[s], front);
      set_place(stages[s + 1], back);
      consider(std::move(change));
    };
    for (int cut = stage.first + 1; cut < stage.last; ++cut) {
      if (own.gpus % 2 == 0) put(cut, {own.island_class, own.gpus / 2}, {own.island_class, own.gpus / 2});
      for (const Place& other : places()) {
        put(cut, own, other);
        put(cut, other, own);
      }
    }
  }

  void merge(std::size_t s) {
    if (!is_single(base_.stages[s]) || !is_single(base_.stages[s + 1])) return;
    for (const Place& place : places()) {
      Change change{
          "stages " + std::to_string(s) + " and " + std::to_string(s + 1) + " merged on " + name_of(place), base_, {s}};
      auto& stages = change.given.stages;
      stages[s].last = stages[s + 1].last;
      stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(s) + 1);
      forget_members(change.given);
      set_place(stages[s], place);
      consider(std::move(change));
    }
  }

  void more_or_fewer_in_flight(std::size_t last) {
    if (is_classic()) return;
    for (const int more : {1, -1}) {
      GivenPipeline next = base_;
      for (std::size_t s = 0; s <= last; ++s) next.stages[s].in_flight += more;
      try_as_is(more > 0 ? "one more in flight" : "one fewer in flight", std::move(next));
    }
  }

  void other_microbatches() {
    const std::int64_t batch = base_.microbatch * base_.microbatches;
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : space_.microbatches) {
      if (batch % size == 0) sizes.push_back(size);
    }
    const auto own = std::ranges::find(sizes, base_.microbatch);
    if (own == sizes.end()) return;
    if (own != sizes.begin()) in_setting(base_.replicas, *(own - 1), batch / *(own - 1));
    if (own + 1 != sizes.end()) in_setting(base_.replicas, *(own + 1), batch / *(own + 1));
  }

  /// Twice or half as many pipelines, of stages on half or twice the GPUs.
  void other_replicas() {
    for (const auto& [replicas, gpus] : {std::pair(2, 1), std::pair(1, 2)}) {
      const int other = base_.replicas * replicas / gpus;
      if (base_.replicas % gpus != 0 || std::ranges::find(space_.replicas, other) == space_.replicas.end()) continue;
      in_setting(other, base_.microbatch, base_.microbatches * gpus / replicas);
      in_setting(other, base_.microbatch * gpus / replicas, base_.microbatches);
    }
  }

  void in_setting(int replicas, std::int64_t microbatch, std::int64_t microbatches) {
    const std::int64_t samples = base_.replicas * base_.microbatch * base_.microbatches;
    if (replicas * microbatch * microbatches != samples) return;
    if (!std::ranges::all_of(base_.stages, is_single)) return;
    Change change{
        std::to_string(replicas) + " pipelines with microbatches of " + std::to_string(microbatch), base_, {}};
    change.given.microbatch = microbatch;
    change.given.microbatches = microbatches;
    for (std::size_t s = 0; s < base_.stages.size(); ++s) {
      change.given.stages[s].parts.front().samples = microbatch;
      change.open.push_back(s);
    }
    if (replicas != base_.replicas && !share_gpus(replicas, change.given)) return;
    consider(std::move(change));
  }

  /// The same GPUs among other pipelines; false: stages get no whole ones.
  bool share_gpus(int replicas, GivenPipeline& given) const {
    given.replicas = replicas;
    given.with_replicas.clear();
    forget_members(given);
    for (GivenStage& stage : given.stages) {
      const Place place = place_of(stage.parts.front());
      if (place.gpus * base_.replicas % replicas != 0) return false;
      set_place(stage, {place.island_class, place.gpus * base_.replicas / replicas});
    }
    return true;
  }

  // ---- what they are made of ----

  [[nodiscard]] const cluster::IslandClass& class_of(int number) const {
    return level_.classes[static_cast<std::size_t>(number)];
  }

  [[nodiscard]] std::string name_of(const Place& place) const {
    return std::to_string(place.gpus) + " " + class_of(place.island_class).alias;
  }

  [[nodiscard]] std::vector<Place> places() const {
    std::vector<Place> all;
    for (std::size_t k = 0; k < shapes_.size(); ++k) {
      for (const int gpus : shapes_[k]) all.push_back({static_cast<int>(k), gpus});
    }
    return all;
  }

  [[nodiscard]] bool is_classic() const { return semantics_.warmup == runtime::Warmup::kClassic; }

  void set_place(GivenStage& stage, const Place& place) const {
    GivenPart& part = stage.parts.front();
    part.island_class = place.island_class;
    const auto& shapes = shapes_[static_cast<std::size_t>(place.island_class)];
    if (std::ranges::find(shapes, place.gpus) == shapes.end()) return part.shape.nodes = 0, void();
    part.shape = cluster::make_shape(class_of(place.island_class), place.gpus);
  }

  /// Whether every replica has the GPUs.
  [[nodiscard]] bool fits(const GivenPipeline& given) const {
    std::map<int, int> used;
    for (const GivenStage& stage : given.stages) {
      for (const GivenPart& part : stage.parts) {
        if (part.shape.nodes == 0) return false;
        used[part.island_class] += part.shape.gpus();
      }
    }
    return std::ranges::all_of(
        used, [&](const auto& use) { return use.second <= class_of(use.first).gpu_count() / given.replicas; });
  }

  const std::vector<parallelizer::PartialPlan>& plans_of(const GivenStage& stage, std::size_t p) {
    const GivenPart& part = stage.parts[p];
    const auto key = std::tuple(stage.first, stage.last, part.island_class, part.shape.gpus(), part.samples);
    const auto [entry, is_new] = plans_.try_emplace(key);
    if (is_new) {
      const parallelizer::Query query{model::signature(model_, stage.first, stage.last),
                                      part.shape,
                                      static_cast<int>(part.samples),
                                      2L * model_.block_count(),
                                      model_.job.allow,
                                      demands_};
      entry->second = enumerator_->solve({&query, 1}).front().plans;
    }
    return entry->second;
  }

  std::vector<cost::Strategy> strategies(const GivenStage& stage, std::size_t p) {
    std::vector<cost::Strategy> result;
    for (const parallelizer::PartialPlan& plan : plans_of(stage, p)) result.push_back(plan.strategy);
    return result;
  }

  // ---- trying ----

  void consider(Change change) {
    if (!fits(change.given)) return;
    if (change.open.empty() || change.open.size() > 2) return all_with_their_fastest(std::move(change));
    GivenStage& front = change.given.stages[change.open.front()];
    GivenStage& back = change.given.stages[change.open.back()];
    for (const cost::Strategy& strategy : strategies(front, 0)) {
      front.parts.front().strategy = strategy;
      if (change.open.size() == 1) {
        try_all_in_flight(change.name, change.given);
        continue;
      }
      if (!is_single(back)) continue;
      for (const cost::Strategy& other : strategies(back, 0)) {
        back.parts.front().strategy = other;
        try_all_in_flight(change.name, change.given);
      }
    }
  }

  void all_with_their_fastest(Change change) {
    const auto depth = static_cast<std::int64_t>(change.given.stages.size());
    for (const std::int64_t more : {-1, 0, 1}) {
      if (is_classic() && more >= 0) break;
      GivenPipeline next = change.given;
      bool found = true;
      for (std::size_t s = 0; s < next.stages.size() && found; ++s) {
        GivenStage& stage = next.stages[s];
        const std::int64_t classic = depth - static_cast<std::int64_t>(s);
        stage.in_flight = more < 0 ? classic : stage.in_flight + more;
        stage.in_flight = std::min(stage.in_flight, next.microbatches);
        const auto& plans = plans_of(stage, 0);
        const parallelizer::PartialPlan* best = nullptr;
        for (const parallelizer::PartialPlan& plan : plans) {
          if (plan.n_max >= stage.in_flight &&
              (best == nullptr || plan.cost.forward + plan.cost.backward < best->cost.forward + best->cost.backward)) {
            best = &plan;
          }
        }
        found = best != nullptr;
        if (found) stage.parts.front().strategy = best->strategy;
      }
      if (found) try_all_in_flight(change.name, next);
    }
  }

  /// With what was in flight and with what 1F1B asks for, and a little more on all of the first stages or some.
  void try_all_in_flight(const std::string& name, const GivenPipeline& given) {
    const auto priced = priced_with_members(given);
    if (!priced || too_slow(*priced)) return;
    if (is_classic()) return judge_classic(name, *priced);
    const auto depth = static_cast<std::int64_t>(given.stages.size());
    std::set<std::vector<std::int64_t>> tried;
    for (const bool classic : {false, true}) {
      for (std::int64_t more = 0; more <= 2; ++more) {
        for (std::int64_t first = 1; first <= (more == 0 ? 1 : depth); ++first) {
          compose::Composition next = *priced;
          std::vector<std::int64_t> counts;
          std::int64_t most = next.microbatches;
          for (std::int64_t s = 0; s < depth; ++s) {
            compose::StageChoice& stage = next.stages[static_cast<std::size_t>(s)];
            const std::int64_t usual = classic ? depth - s : given.stages[static_cast<std::size_t>(s)].in_flight;
            most = std::max<std::int64_t>(1, std::min({most, usual + (s < first ? more : 0), holds(stage)}));
            stage.in_flight = most;
            counts.push_back(most);
          }
          if (tried.insert(std::move(counts)).second) judge(name, next);
        }
      }
    }
  }

  void try_as_is(const std::string& name, GivenPipeline given) {
    make_falling(given);
    const auto priced = priced_with_members(given);
    if (priced) judge(name, *priced);
  }

  /// With what the runtime has in flight, and nothing else.
  void judge_classic(const std::string& name, compose::Composition next) {
    auto depth = static_cast<std::int64_t>(next.stages.size());
    for (compose::StageChoice& stage : next.stages) stage.in_flight = std::min(depth--, next.microbatches);
    judge(name, next);
  }

  [[nodiscard]] std::optional<compose::Composition> priced_with_members(const GivenPipeline& given) const {
    auto priced = compose::price(given, model_, level_, nullptr);
    if (!priced) return std::nullopt;
    for (std::size_t s = 0; s < given.stages.size(); ++s) {
      for (std::size_t p = 0; p < given.stages[s].parts.size(); ++p) {
        priced->stages[s].parts[p].member = given.stages[s].parts[p].member;
      }
    }
    return *std::move(priced);
  }

  /// Microbatches that the stage's memory has room for.
  [[nodiscard]] std::int64_t holds(const compose::StageChoice& stage) const {
    std::int64_t most = INT64_MAX;
    for (const compose::PartChoice& part : stage.parts) {
      most = std::min(most, cost::max_in_flight(part.plan.cost, class_of(part.island_class).device.usable()));
    }
    return most;
  }

  /// All microbatches of a stage, and the way of the first one there and of the last one back, take as long already.
  [[nodiscard]] bool too_slow(const compose::Composition& composition) const {
    Nanoseconds least;
    Nanoseconds way;
    Nanoseconds step;
    for (const compose::StageChoice& stage : composition.stages) {
      if (holds(stage) < 1) return true;
      least = std::max(least, way + stage.T * composition.microbatches);
      way += stage.T + stage.to_next.latency * 2;
      step = std::max(step, stage.o);
    }
    return std::max(least, way) + step >= result_.time;
  }

  void judge(const std::string& name, const compose::Composition& next) {
    if (std::ranges::any_of(next.stages, [&](const auto& stage) { return stage.in_flight > holds(stage); })) return;
    ++result_.tried;
    const Nanoseconds time = simulated(next, semantics_.transfers);
    if (time >= result_.time || !is_runnable(subject_.target, next, subject_.fleet, level_, subject_.model)) return;
    result_.time = time;
    result_.change = name;
  }

  const Subject& subject_;
  runtime::Semantics semantics_;
  model::Model model_;
  parallelizer::Demands demands_;
  const cluster::IslandLevel& level_;
  const compose::Space& space_;
  GivenPipeline base_;
  std::unique_ptr<parallelizer::Parallelizer> enumerator_;
  std::vector<std::vector<int>> shapes_;  // [class]
  std::map<std::tuple<int, int, int, int, std::int64_t>, std::vector<parallelizer::PartialPlan>> plans_;
  BestNeighbour result_;
};

}  // namespace

compose::GivenPipeline as_given(const compose::Composition& composition, const cluster::IslandLevel& level) {
  GivenPipeline given{composition.replicas, composition.microbatch, composition.microbatches, {}};
  for (const compose::StageChoice& stage : composition.stages) {
    GivenStage& out = given.stages.emplace_back();
    out.first = stage.first;
    out.last = stage.last;
    out.in_flight = stage.in_flight;
    for (const compose::PartChoice& part : stage.parts) {
      const cluster::IslandClass& c = level.classes[static_cast<std::size_t>(part.island_class)];
      out.parts.push_back({part.island_class, cluster::make_shape(c, part.gpus), part.samples, part.plan.strategy,
                           part.plan.parallelizer, part.plan.opaque, part.member});
    }
  }
  return given;
}

Nanoseconds simulated(const compose::Composition& composition, runtime::Transfers transfers) {
  simulate::SimPipeline run;
  run.transfers = transfers;
  run.microbatches = composition.microbatches;
  for (const compose::StageChoice& stage : composition.stages) {
    simulate::SimStage& out = run.stages.emplace_back();
    out.warmup = std::min(stage.in_flight, composition.microbatches) - 1;
    out.latency = stage.to_next.latency;
    out.occupancy = stage.to_next.occupancy;
    for (const compose::PartChoice& part : stage.parts) {
      const cost::StageCost& cost = part.plan.cost;
      out.parts.push_back({cost.forward, cost.backward, stage.A - stage.T, cost.optimizer_step});
    }
  }
  return simulate::simulate({{std::move(run)}}).iteration;
}

BestNeighbour best_neighbour(const compose::Composition& composition, const Subject& subject,
                             const cluster::IslandHierarchy& hierarchy, const compose::Space& space) {
  return Neighbourhood(composition, subject, hierarchy, space).run();
}

cluster::IslandHierarchy islands_of(const cluster::Fleet& fleet) {
  constexpr double kTolerance = 0.10;  // the command line's default
  return cluster::find_islands(fleet, kTolerance);
}

compose::SearchResult search_for(const Subject& subject, const cluster::IslandHierarchy& hierarchy,
                                 std::optional<runtime::Schedule> schedule) {
  const auto enumerator = parallelizer::make_enumerator(subject.model);
  const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get()};
  compose::SearchOptions options;
  options.timed = true;
  options.schedule = schedule;
  options.label_budget = compose::usual_label_budget(subject.fleet.gpu_count());
  return compose::search_target(subject.target, subject.model, hierarchy, parallelizers, options);
}

std::optional<BestPlan> best_plan(const Subject& subject) {
  BestPlan best{{}, islands_of(subject.fleet), {}};
  // Others: interleaved_neighbours.hpp.
  const compose::SearchResult found = search_for(subject, best.hierarchy, runtime::Schedule::k1F1B);
  best.space = found.space;
  const runtime::Transfers transfers = runtime::runtime_of(subject.target).semantics.transfers;
  Nanoseconds least = Nanoseconds::max();
  for (const compose::Composition& each : found.shortlist()) {
    const auto& level = best.hierarchy.levels[static_cast<std::size_t>(each.level)];
    const Nanoseconds time = simulated(each, transfers);
    if (time >= least || !is_runnable(subject.target, each, subject.fleet, level, subject.model)) continue;
    least = time;
    best.plan = each;
  }
  if (best.plan.stages.empty()) return std::nullopt;
  return best;
}

std::optional<BestNeighbour> neighbour_of_best(const Subject& subject) {
  const auto best = best_plan(subject);
  if (!best) return std::nullopt;
  return best_neighbour(best->plan, subject, best->hierarchy, best->space);
}

}  // namespace tangram::shipped
