#include "shipped/neighbours.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tangram/compose/given.hpp"
#include "tangram/compose/search.hpp"
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

GivenPipeline as_given(const compose::Composition& composition, const cluster::IslandLevel& level) {
  GivenPipeline given{composition.replicas, composition.microbatch, composition.microbatches, {}};
  for (const compose::StageChoice& stage : composition.stages) {
    GivenStage& out = given.stages.emplace_back();
    out.first = stage.first;
    out.last = stage.last;
    out.in_flight = stage.in_flight;
    for (const compose::PartChoice& part : stage.parts) {
      const cluster::IslandClass& c = level.classes[static_cast<std::size_t>(part.island_class)];
      out.parts.push_back({part.island_class, cluster::make_shape(c, part.gpus), part.samples, part.plan.strategy,
                           part.plan.parallelizer, part.plan.opaque});
    }
  }
  return given;
}

/// No stage holds more than the one before it, nor than M.
void make_falling(GivenPipeline& given) {
  std::int64_t most = given.microbatches;
  for (GivenStage& stage : given.stages) {
    stage.in_flight = std::max<std::int64_t>(1, std::min(stage.in_flight, most));
    most = stage.in_flight;
  }
}

/// A change that may leave open which strategies the stages have that it touches.
struct Change {
  std::string name;
  GivenPipeline given;
  std::vector<std::size_t> open;
};

class Neighbourhood {
 public:
  Neighbourhood(const compose::Composition& composition, const model::Model& model,
                const cluster::IslandHierarchy& hierarchy, const compose::Space& space)
      : model_(model),
        level_(hierarchy.levels[static_cast<std::size_t>(composition.level)]),
        space_(space),
        base_(as_given(composition, level_)),
        enumerator_(parallelizer::make_enumerator(model)) {
    std::size_t before = 0;  // the space names the shapes of all levels in a row
    for (int l = 0; l < composition.level; ++l) before += hierarchy.levels[static_cast<std::size_t>(l)].classes.size();
    for (std::size_t k = 0; k < level_.classes.size(); ++k) shapes_.push_back(space.shapes.at(before + k).second);
    result_.own = result_.time = simulated(composition);
  }

  BestNeighbour run() {
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
      set_place(stages[s], place);
      consider(std::move(change));
    }
  }

  void more_or_fewer_in_flight(std::size_t last) {
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
    if (own != sizes.begin()) other_microbatch(*(own - 1));
    if (own + 1 != sizes.end()) other_microbatch(*(own + 1));
  }

  void other_microbatch(std::int64_t size) {
    Change change{"microbatches of " + std::to_string(size), base_, {}};
    change.given.microbatch = size;
    change.given.microbatches = base_.microbatch * base_.microbatches / size;
    for (std::size_t s = 0; s < base_.stages.size(); ++s) {
      if (!is_single(base_.stages[s])) return;
      change.given.stages[s].parts.front().samples = size;
      change.open.push_back(s);
    }
    consider(std::move(change));
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
      const parallelizer::Query query{model::signature(model_, stage.first, stage.last), part.shape,
                                      static_cast<int>(part.samples), 2L * model_.block_count(), model_.job.allow};
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
    const auto priced = compose::price(given, model_, level_, nullptr);
    if (!priced || too_slow(*priced)) return;
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
    const auto priced = compose::price(given, model_, level_, nullptr);
    if (priced) judge(name, *priced);
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
    const Nanoseconds time = simulated(next);
    if (time >= result_.time) return;
    result_.time = time;
    result_.change = name;
  }

  const model::Model& model_;
  const cluster::IslandLevel& level_;
  const compose::Space& space_;
  GivenPipeline base_;
  std::unique_ptr<parallelizer::Parallelizer> enumerator_;
  std::vector<std::vector<int>> shapes_;  // [class]
  std::map<std::tuple<int, int, int, int, std::int64_t>, std::vector<parallelizer::PartialPlan>> plans_;
  BestNeighbour result_;
};

}  // namespace

Nanoseconds simulated(const compose::Composition& composition) {
  simulate::SimPipeline run;
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

BestNeighbour best_neighbour(const compose::Composition& composition, const model::Model& model,
                             const cluster::IslandHierarchy& hierarchy, const compose::Space& space) {
  return Neighbourhood(composition, model, hierarchy, space).run();
}

std::optional<BestNeighbour> neighbour_of_best(const cluster::Fleet& fleet, const model::Model& model) {
  constexpr double kTolerance = 0.10;  // the command line's default
  const cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet, kTolerance);
  const auto enumerator = parallelizer::make_enumerator(model);
  const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get()};
  compose::SearchOptions options;
  options.timed = true;
  options.label_budget = compose::usual_label_budget(fleet.gpu_count());
  const compose::SearchResult found = compose::search(model, hierarchy, parallelizers, options);
  const auto shortlist = found.shortlist();
  if (shortlist.empty()) return std::nullopt;
  const auto best = std::ranges::min_element(shortlist, {}, simulated);
  return best_neighbour(*best, model, hierarchy, found.space);
}

}  // namespace tangram::shipped
