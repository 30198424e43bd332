#include "tangram/multimodal/share.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "efficient.hpp"
#include "faults.hpp"
#include "stage_row.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

// Layouts of the first encoders, together.
struct Layouts {
  Costs costs;  // time but for steps, step, reserve
  std::vector<int> choices;
};

std::vector<Layouts> efficient_layouts(const ShareProblem& problem, int allocation) {
  std::vector<Layouts> all{{{0, 0, 0}, {}}};
  for (int e = 0; e < problem.layouts.rows(); ++e) {
    std::vector<Layouts> more;
    for (const Layouts& some : all) {
      const std::vector<EncoderLayout>& own = problem.layouts(e, allocation);
      for (std::size_t i = 0; i < own.size(); ++i) {
        const EncoderLayout& layout = own[i];
        const std::int64_t round = layout.forward + layout.backward + layout.gather + layout.broadcast;
        Layouts& both = more.emplace_back(some);
        both.costs[0] += problem.rounds * round + layout.sync;
        both.costs[1] = std::max(both.costs[1], layout.step);
        both.costs[2] += layout.reserve;
        both.choices.push_back(static_cast<int>(i));
      }
    }
    keep_efficient(more);
    all = std::move(more);
  }
  return all;
}

StageGraph language_of(const ShareProblem& problem, const SharedPipeline& pipeline, std::int64_t reserve) {
  StageGraph graph;
  graph.microbatches = problem.microbatches;
  graph.graph_warmup = problem.graph_warmup;
  append_row(graph, pipeline.stages, pipeline.hops);
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    const StageMemory& memory = pipeline.memory[s];
    const std::int64_t held = std::max<std::int64_t>(0, memory.free - reserve) / memory.per_microbatch;
    graph.stages[s].plan.n_max = std::min(graph.stages[s].plan.n_max, held);
  }
  return graph;
}

class ShareCheck {
 public:
  explicit ShareCheck(const ShareProblem& problem) : problem_(problem) {}

  Expected<void> run() {
    faults_.need(problem_.microbatches > 0, "/microbatches", "at least one microbatch is needed");
    faults_.need(problem_.rounds > 0, "/rounds", "at least one round is needed");
    faults_.need(problem_.layouts.rows() > 0, "/layouts", "at least one encoder is needed");
    faults_.need(!problem_.language.empty(), "/language", "the language model needs a way to run");
    for (const std::vector<EncoderLayout>& layouts : problem_.layouts) {
      faults_.need(std::ranges::all_of(layouts, is_valid), "/layouts", "times and reserves are not negative");
    }
    for (std::size_t i = 0; i < problem_.language.size(); ++i) {
      pipeline("/language/" + std::to_string(i), problem_.language[i]);
    }
    return std::move(faults_).answer();
  }

 private:
  static bool is_valid(const EncoderLayout& layout) {
    return std::min({layout.forward, layout.backward, layout.gather, layout.broadcast, layout.sync, layout.step,
                     layout.reserve}) >= 0;
  }

  void pipeline(const std::string& place, const SharedPipeline& own) {
    faults_.need(own.allocation >= 0 && own.allocation < problem_.layouts.columns(), place + "/allocation",
                 "one that encoder layouts are listed by");
    faults_.need(own.sync >= 0, place + "/sync", "synchronisation takes no less than nothing");
    const bool activations =
        std::ranges::all_of(own.memory, [](const StageMemory& memory) { return memory.per_microbatch > 0; });
    faults_.need(activations, place + "/memory", "a microbatch takes more than nothing");
    const bool late_sync =
        std::ranges::all_of(own.stages, [](const Stage& s) { return s.plan.A == s.plan.T && !s.is_frozen(); });
    faults_.need(late_sync, place,
                 "gradients are synchronised behind all passes: A is T on every stage, and none is frozen");
    const bool whole = own.memory.size() == own.stages.size() && own.hops.size() + 1 == own.stages.size();
    faults_.need(whole, place, "memory for each stage, and a hop behind each but the last");
    if (!whole) return;
    StageGraph graph;
    append_row(graph, own.stages, own.hops);
    faults_.add(place, multimodal::check(graph));
  }

  const ShareProblem& problem_;
  Faults faults_{"share-problem"};
};

}  // namespace

Expected<void> check(const ShareProblem& problem) { return ShareCheck(problem).run(); }

Colocated plan_of(const ShareProblem& problem, const SharedSelection& selection) {
  const SharedPipeline& pipeline = at(problem.language, selection.language);
  Colocated plan;
  plan.rounds = problem.rounds;
  plan.sync = pipeline.sync;
  for (const Stage& stage : pipeline.stages) plan.step = std::max(plan.step, stage.plan.o);
  SuperLane& own = plan.super_lanes.emplace_back();
  EncoderLane& lane = own.lanes.emplace_back();
  std::int64_t reserve = 0;
  for (int e = 0; e < problem.layouts.rows(); ++e) {
    const EncoderLayout& layout = at(problem.layouts(e, pipeline.allocation), at(selection.layouts, e));
    lane.forward += layout.forward;
    lane.backward += layout.backward;
    own.gather += layout.gather;
    own.broadcast += layout.broadcast;
    plan.sync += layout.sync;
    plan.step = std::max(plan.step, layout.step);
    reserve += layout.reserve;
  }
  own.language = language_of(problem, pipeline, reserve);
  return plan;
}

std::optional<SharedSelection> share(const ShareProblem& problem) {
  std::vector<std::vector<Layouts>> layouts;
  for (int a = 0; a < problem.layouts.columns(); ++a) layouts.push_back(efficient_layouts(problem, a));
  std::optional<SharedSelection> best;
  for (std::size_t i = 0; i < problem.language.size(); ++i) {
    for (const Layouts& some : at(layouts, problem.language[i].allocation)) {
      SharedSelection selection{some.choices, static_cast<int>(i), 0};
      const auto time = closed_form(plan_of(problem, selection));
      if (!time || (best && *time >= best->time)) continue;
      selection.time = *time;
      best = std::move(selection);
    }
  }
  return best;
}

}  // namespace tangram::multimodal
