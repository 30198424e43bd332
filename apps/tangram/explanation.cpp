#include "explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "plan_view.hpp"
#include "table.hpp"
#include "tangram/cluster/edits.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/evolve/variants.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kFaster = 1.1;               // what one thing is made faster by
constexpr std::size_t kAlternatives = 3;      // strategies of a stage that are simulated
constexpr int kCandidates = 8;                // plans among which the next best is looked for
constexpr std::size_t kExplainedStages = 16;  // of the first pipeline; later stages are like these

class Explainer {
 public:
  Explainer(const plan::LaunchPlan& plan, const cluster::Fleet& fleet, const PlanningOptions& options,
            const compose::ProgressCallback& progress)
      : plan_(plan), fleet_(fleet), options_(options), progress_(progress) {}

  Expected<Explanation> run() {
    evolve::Refit now = evolve::refit(plan_, fleet_, plan_.model, refit_options());
    if (!now.fits()) return fail(misfit(now));
    if (auto done = predict(*now.plan, fleet_); !done) return fail(std::move(done.error()));
    result_.iteration = now.plan->predicted.iteration;
    note_memory(*now.plan);
    find_limits();
    try_cuts();
    try_degrees(*now.plan);
    plan_others();
    return std::move(result_);
  }

 private:
  [[nodiscard]] evolve::RefitOptions refit_options() const {
    return {options_.island_tolerance, options_.search.profiles};
  }

  static Diagnostics misfit(const evolve::Refit& refit) {
    Diagnostic d;
    d.kind = ErrorKind::kInfeasible;
    d.code = "plan-does-not-fit";
    d.message = refit.gone.empty() ? fmt::format("the plan does not fit the fleet: {}", refit.misfits.front().text)
                                   : fmt::format("the fleet has no GPU {} of {}, which the plan uses",
                                                 refit.gone.front().second, refit.gone.front().first);
    d.hint = "give the fleet that the plan was made for, or plan anew with plan --against";
    return {d};
  }

  void say(const std::string& phase) const {
    compose::Progress progress;
    progress.phase = phase;
    if (progress_) progress_(progress);
  }

  /// The variant on a fleet, simulated.
  [[nodiscard]] Alternative priced(std::string what, const plan::LaunchPlan& variant,
                                   const cluster::Fleet& fleet) const {
    evolve::Refit refit = evolve::refit(variant, fleet, variant.model, refit_options());
    if (!refit.fits()) {
      return {std::move(what), std::nullopt,
              refit.misfits.empty() ? "GPUs are gone" : reason_of(refit.misfits.front())};
    }
    if (!predict(*refit.plan, fleet)) return {std::move(what), std::nullopt, "its schedule cannot finish"};
    return {std::move(what), refit.plan->predicted.iteration, ""};
  }

  static std::string reason_of(const evolve::Misfit& misfit) {
    if (misfit.code == "memory-exceeded") return fmt::format("{} has too little memory", misfit.where);
    return misfit.text;
  }

  void note_memory(const plan::LaunchPlan& now) {
    for (const int id : now.pipelines.front().stages) {
      MemoryUse fullest{id, 0, 1, 0};
      for (const plan::Part& part : now.stage(id).parts) {
        const plan::PartPrediction& p = part.predicted;
        const double share = p.peak_memory.as_double() / p.usable_memory.as_double();
        if (share < fullest.share) continue;
        const std::int64_t room =
            (p.usable_memory - p.peak_memory).value() / std::max<std::int64_t>(1, p.activation.value());
        fullest = {id, share, p.in_flight, room};
      }
      result_.memory.push_back(fullest);
    }
    std::ranges::stable_sort(result_.memory, std::greater<>(), &MemoryUse::share);
  }

  void find_limits() {
    say("what limits the plan");
    const auto try_fleet = [&](const char* what, const auto& change) {
      cluster::Fleet faster = fleet_;
      for (cluster::Node& node : faster.nodes) change(node);
      result_.limits.push_back(priced(what, plan_, faster));
    };
    const auto quicken = [](BytesPerSecond& rate) { rate = rate * kFaster; };
    try_fleet("matrix products a tenth faster", [](cluster::Node& node) {
      for (cluster::DeviceGroup& group : node.groups) {
        for (FlopsPerSecond& peak : group.device.peak) peak = peak * kFaster;
      }
    });
    try_fleet("memory bandwidth a tenth more", [&](cluster::Node& node) {
      for (cluster::DeviceGroup& group : node.groups) quicken(group.device.memory_bandwidth);
    });
    try_fleet("links inside nodes a tenth faster", [&](cluster::Node& node) {
      for (cluster::DeviceGroup& group : node.groups) {
        for (BytesPerSecond* rate :
             {&group.link.bandwidth, &group.device.peer_link.bandwidth, &group.device.peer_pair}) {
          quicken(*rate);
        }
      }
      quicken(node.host_link.bandwidth);
    });
    cluster::Fleet network = fleet_;
    for (cluster::Node& node : network.nodes) quicken(node.network.bandwidth);
    for (cluster::LinkRule& rule : network.rules) quicken(rule.link.bandwidth);
    for (cluster::Link& link : network.measured) quicken(link.bandwidth);
    result_.limits.push_back(priced("network between nodes a tenth faster", plan_, network));
    std::ranges::stable_sort(result_.limits, {},
                             [](const Alternative& a) { return a.iteration.value_or(Nanoseconds::max()); });
  }

  void try_cuts() {
    say("what other cuts would take");
    const std::vector<int>& stages = plan_.pipelines.front().stages;
    for (std::size_t s = 0; s + 1 < std::min(stages.size(), kExplainedStages); ++s) {
      for (const int blocks : {-1, 1}) {
        const auto variant = evolve::with_cut_moved(plan_, stages[s], blocks);
        if (!variant) continue;
        const int layer = plan_.stage(stages[s]).last + std::min(blocks, 0);
        result_.cuts.push_back(
            priced(fmt::format("layer {} in stage {}", layer, blocks > 0 ? s : s + 1), *variant, fleet_));
      }
    }
  }

  [[nodiscard]] static cluster::DeviceShape shape_of(const plan::LaunchPlan& now, const plan::Part& part) {
    const plan::PlanIsland& island = now.island(part.island);
    cluster::DeviceShape shape;
    shape.device = island.device;
    shape.nodes = part.members;
    shape.per_node = part.strategy.degrees.gpus() / part.members;
    shape.intra = island.inside_member;
    shape.inter = island.between_members;
    return shape;
  }

  /// The best strategies with other degrees, in the order of their time.
  [[nodiscard]] std::vector<cost::Strategy> others_of(const plan::LaunchPlan& now, const plan::Stage& stage,
                                                      const plan::Part& part) const {
    parallelizer::Query query;
    query.slice = model::signature(plan_.model, stage.first, stage.last);
    query.shape = shape_of(now, part);
    query.samples = static_cast<int>(part.samples);
    query.max_in_flight = stage.warmup + 1;
    query.allow = plan_.model.job.allow;
    const auto enumerator = parallelizer::make_enumerator(plan_.model, options_.search.profiles);
    std::vector<cost::Strategy> others;
    std::set<cost::Degrees> seen{part.strategy.degrees};
    const std::vector<parallelizer::Outcome> outcomes = enumerator->solve(std::span(&query, 1));
    for (const parallelizer::PartialPlan& partial : outcomes.front().plans) {
      if (others.size() >= kAlternatives || !seen.insert(partial.strategy.degrees).second) continue;
      others.push_back(partial.strategy);
    }
    return others;
  }

  void try_degrees(const plan::LaunchPlan& now) {
    say("what other degrees would take");
    const std::vector<int>& stages = plan_.pipelines.front().stages;
    for (std::size_t s = 0; s < std::min(stages.size(), kExplainedStages); ++s) {
      const plan::Stage& stage = now.stage(stages[s]);
      for (std::size_t p = 0; p < stage.parts.size(); ++p) {
        std::optional<Alternative> best;
        for (const cost::Strategy& strategy : others_of(now, stage, stage.parts[p])) {
          Alternative other = priced(fmt::format("stage {} with {} instead of {}", s, strategy_text(strategy),
                                                 strategy_text(stage.parts[p].strategy)),
                                     evolve::with_strategy(plan_, stage.id, p, strategy), fleet_);
          const auto time = [](const Alternative& a) { return a.iteration.value_or(Nanoseconds::max()); };
          if (!best || time(other) < time(*best)) best = std::move(other);
        }
        if (best) result_.degrees.push_back(std::move(*best));
      }
    }
  }

  /// Planned anew on another fleet.
  [[nodiscard]] Alternative planned(std::string what, const cluster::Fleet& fleet) const {
    const auto found = make_plan(fleet, plan_.model, options_, progress_);
    if (!found) return {std::move(what), std::nullopt, found.error().front().message};
    return {std::move(what), found->plan.predicted.iteration, ""};
  }

  void plan_others() {
    find_next_best();
    std::set<std::string> types;
    for (const cluster::Node& node : fleet_.nodes) {
      for (const cluster::DeviceGroup& group : node.groups) types.insert(group.device.name);
    }
    for (const std::string& type : types) {
      const auto fleet = cluster::edited(fleet_, {{}, {fmt::format("gpu={},nodes=1", type)}, {}});
      if (fleet) result_.more.push_back(planned(fmt::format("one node more with {}", type), *fleet));
    }
    std::set<std::string> classes;
    for (const plan::PlanIsland& island : plan_.islands) {
      if (!classes.insert(island.island_class).second) continue;
      cluster::Edits edits;
      for (const plan::HostGpus& host : island.nodes) edits.drop.push_back("node=" + host.host);
      const std::string what = fmt::format("without island {} ({})", island.id, island.island_class);
      const auto fleet = cluster::edited(fleet_, edits);
      if (fleet) {
        result_.fewer.push_back(planned(what, *fleet));
      } else {
        result_.fewer.push_back({what, std::nullopt, "nothing is left of the fleet"});
      }
    }
  }

  /// The fastest of the plans that were simulated and do something else.
  void find_next_best() {
    PlanningOptions options = options_;
    options.search.top = std::max(options.search.top, kCandidates);
    options.near = &plan_;
    options.choose = [&](const std::vector<plan::LaunchPlan>& plans, std::size_t best) {
      for (const plan::LaunchPlan& other : plans) {
        const evolve::GpuCounts counts = evolve::count_roles(evolve::roles_of(plan_), evolve::roles_of(other));
        const bool same = counts.moved() == 0 && counts.left == 0 &&
                          other.pipelines.front().microbatch == plan_.pipelines.front().microbatch;
        const Nanoseconds time = other.predicted.iteration;
        if (same || (result_.next_best && *result_.next_best->iteration <= time)) continue;
        result_.next_best = Alternative{fmt::format("{}, microbatches of {}, {} of {} GPUs with other work",
                                                    counted(static_cast<std::int64_t>(other.stages.size()), "stage"),
                                                    other.pipelines.front().microbatch, thousands(counts.moved()),
                                                    thousands(static_cast<std::int64_t>(other.ranks.size()))),
                                        time, ""};
      }
      return best;
    };
    static_cast<void>(make_plan(fleet_, plan_.model, options, progress_));
  }

  const plan::LaunchPlan& plan_;
  const cluster::Fleet& fleet_;
  const PlanningOptions& options_;
  const compose::ProgressCallback& progress_;
  Explanation result_;
};

std::string price_text(const Alternative& alternative, Nanoseconds now) {
  if (!alternative.iteration) return alternative.why_not;
  const double change = alternative.iteration->as_double() / now.as_double() - 1;
  return fmt::format("{} an iteration ({:+.2f} %)", people_time(to_seconds(*alternative.iteration)), change * 100);
}

std::string section(const char* title, const std::vector<Alternative>& list, Nanoseconds now,
                    const Terminal& terminal) {
  if (list.empty()) return "";
  Table table({{title, false, 30}, {"takes", false, 30}});
  for (const Alternative& a : list) table.add({{a.what}, {price_text(a, now)}});
  return "\n" + table.render(terminal);
}

std::string memory_text(const Explanation& explanation) {
  const MemoryUse& fullest = explanation.memory.front();
  return fmt::format("memory    fullest: stage {} with {:.1f} % of what is usable, {}; room for {} more\n",
                     fullest.stage, fullest.share * 100, counted(fullest.in_flight, "microbatch") + " in flight",
                     thousands(fullest.room));
}

/// The largest gain of a tenth.
std::string limit_text(const Explanation& explanation) {
  const Alternative& first = explanation.limits.front();
  if (!first.iteration) return "";
  const double gain = explanation.iteration.as_double() / first.iteration->as_double() - 1;
  return fmt::format("limit     {} would make it {:.1f} % faster\n", first.what, gain * 100);
}

Json alternative_json(const Alternative& a, Nanoseconds now) {
  Json json{{"what", a.what}};
  json["iteration_s"] = a.iteration ? Json(to_seconds(*a.iteration)) : Json(nullptr);
  json["change"] = a.iteration ? Json(a.iteration->as_double() / now.as_double() - 1) : Json(nullptr);
  if (!a.why_not.empty()) json["why_not"] = a.why_not;
  return json;
}

}  // namespace

Expected<Explanation> explain(const plan::LaunchPlan& plan, const cluster::Fleet& fleet, const PlanningOptions& options,
                              const compose::ProgressCallback& progress) {
  return Explainer(plan, fleet, options, progress).run();
}

std::string explanation_for_people(const plan::LaunchPlan& plan, const Explanation& e, const Terminal& terminal) {
  const plan::Predicted& p = plan.predicted;
  std::string out = fmt::format(
      "plan      {} an iteration; slowest is stage {}: computes {:.0f} %, bubble {:.0f} %, exposed "
      "sync {:.0f} %\n",
      people_time(to_seconds(e.iteration)), p.bottleneck_stage, p.breakdown.compute / to_seconds(p.iteration) * 100,
      p.bubble_fraction * 100, p.breakdown.exposed_sync / to_seconds(p.iteration) * 100);
  out += limit_text(e) + memory_text(e);
  if (e.next_best) out += fmt::format("next best {}: {}\n", price_text(*e.next_best, e.iteration), e.next_best->what);
  out += section("what limits it", e.limits, e.iteration, terminal);
  out += section("why these cuts", e.cuts, e.iteration, terminal);
  out += section("why these degrees", e.degrees, e.iteration, terminal);
  out += section("what a node more brings", e.more, e.iteration, terminal);
  out += section("what an island is worth", e.fewer, e.iteration, terminal);
  return out;
}

Json explanation_json(const plan::LaunchPlan& plan, const Explanation& e) {
  Json json;
  json["schema"] = "tangram.explanation/1";
  json["status"] = "ok";
  json["plan_id"] = plan::plan_digest(plan);
  json["iteration_s"] = to_seconds(e.iteration);
  json["bottleneck_stage"] = plan.predicted.bottleneck_stage;
  json["memory"] = Json::array();
  for (const MemoryUse& use : e.memory) {
    json["memory"].push_back(
        {{"stage", use.stage}, {"share", use.share}, {"in_flight", use.in_flight}, {"room", use.room}});
  }
  const auto list = [&](const char* name, const std::vector<Alternative>& alternatives) {
    json[name] = Json::array();
    for (const Alternative& a : alternatives) json[name].push_back(alternative_json(a, e.iteration));
  };
  json["next_best"] = e.next_best ? alternative_json(*e.next_best, e.iteration) : Json(nullptr);
  list("limits", e.limits);
  list("cuts", e.cuts);
  list("degrees", e.degrees);
  list("more", e.more);
  list("fewer", e.fewer);
  return json;
}

}  // namespace tangram::app
