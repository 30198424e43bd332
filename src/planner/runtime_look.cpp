#include "runtime_look.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "options.hpp"
#include "planning.hpp"
#include "prediction.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::planner {

namespace {

constexpr std::int64_t kLabels = 10'000;  // of one runtime
constexpr double kGoodEnough = 0.03;

std::vector<cost::Degrees> degrees_of(const std::vector<compose::Composition>& plans) {
  std::set<cost::Degrees> degrees;
  for (const compose::Composition& plan : plans) {
    for (const compose::StageChoice& stage : plan.stages) {
      for (const compose::PartChoice& part : stage.parts) degrees.insert(part.plan.strategy.degrees);
    }
  }
  return {degrees.begin(), degrees.end()};
}

/// Of a look at any of the runtimes.
PlanOptions look_options(const std::vector<compose::Composition>& near, PlanOptions options) {
  options.parallelizers.clear();
  options.search.schedule.reset();
  options.search.near_degrees = degrees_of(near);
  options.search.relaxed_bound = Nanoseconds(0);  // nobody asks how far a look is from the best
  options.search.label_budget = std::min(options.search.label_budget, kLabels);
  options.search.accepted_gap = std::max(options.search.accepted_gap, kGoodEnough);
  return options;
}

/// 0 stands for none.
Nanoseconds faster_of(Nanoseconds a, Nanoseconds b) {
  if (a == Nanoseconds(0) || b == Nanoseconds(0)) return std::max(a, b);
  return std::min(a, b);
}

/// No stage holds more microbatches than its place asks for, as every runtime has it.
compose::Composition with_classic_warmup(compose::Composition plan) {
  if (plan.chunks > 1) return plan;
  auto depth = static_cast<std::int64_t>(plan.stages.size());
  for (compose::StageChoice& stage : plan.stages) stage.in_flight = std::min(stage.in_flight, depth--);
  return plan;
}

/// Of plans at hand that were found for another target, those that this one can run.
struct AtHand {
  Nanoseconds closed_form = Nanoseconds::max();  // the least, under the target's semantics
  Nanoseconds time;                              // the least, as simulated; 0: it can run none
};

class TargetLook {
 public:
  /// For the target of the options; all must outlive it.
  TargetLook(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
             const compose::ProgressCallback& progress)
      : options_(options), planning_(fleet, model, options_, progress) {}
  TargetLook(const TargetLook&) = delete;  // the planning refers to its options
  TargetLook& operator=(const TargetLook&) = delete;

  /// The time of its fastest plan, as simulated, the plans at hand among them; 0: there is none. What it finds is at
  /// hand for the next look.
  [[nodiscard]] Nanoseconds fastest(std::vector<compose::Composition>& near) {
    const AtHand known = at_hand(near);
    options_.search.incumbent = std::min(options_.search.incumbent, known.closed_form);
    Nanoseconds fastest = known.time;
    for (const compose::Composition& composition : planning_.search_by_time().shortlist()) {
      fastest = faster_of(fastest, planning_.simulated_time(composition).value_or(Nanoseconds(0)));
      near.push_back(composition);
    }
    return fastest;
  }

 private:
  [[nodiscard]] AtHand at_hand(const std::vector<compose::Composition>& near) const {
    AtHand known;
    for (const compose::Composition& composition : near) {
      if (!planning_.is_affordable(composition)) continue;
      const auto plan = planning_.assemble(with_classic_warmup(composition));
      if (!plan || !reasons_against(*plan, options_.target).empty()) continue;
      const simulate::Result result = simulate::simulate(simulate::schedule_of(*plan));
      if (result.deadlock) continue;
      known.closed_form = std::min(known.closed_form, plan::check(*plan).closed_form);
      known.time = faster_of(known.time, result.iteration);
    }
    return known;
  }

  PlanOptions options_;
  Planning planning_;
};

Nanoseconds fastest_for(std::vector<compose::Composition>& near, const cluster::Fleet& fleet, const model::Model& model,
                        const PlanOptions& options, const compose::ProgressCallback& progress) {
  const auto own = as_run(model, options);
  if (own) {
    std::vector<compose::Composition> none;  // those at hand are priced for another job
    return TargetLook(fleet, own->model(), own->options(), progress).fastest(none);
  }
  return TargetLook(fleet, model, options, progress).fastest(near);
}

const char* none_found(const std::optional<compose::SpendLimit>& limit) {
  if (!limit) return "no plan was found";
  const bool counts_gpus = limit->currency == compose::Currency::kGpus;
  return counts_gpus ? "no plan on so few GPUs was found" : "no plan for so few dollars was found";
}

plan::RuntimeLook look_at(const runtime::Runtime& runtime, std::vector<compose::Composition>& near,
                          const cluster::Fleet& fleet, const model::Model& model, PlanOptions options,
                          const compose::ProgressCallback& progress) {
  plan::RuntimeLook look{std::string(runtime.name), Nanoseconds(0), ""};
  if (const auto refused = plan::model_refusals(runtime.target, model); !refused.empty()) {
    look.why_not = refused.front().text;
    return look;
  }
  options.target = runtime.target;
  const Deadline& deadline = options.search.deadline;
  if (!deadline.has_passed()) look.iteration = fastest_for(near, fleet, model, options, progress);
  if (look.iteration == Nanoseconds(0)) {
    look.why_not = deadline.is_missed() ? "no plan was found in time" : none_found(options.search.spend);
  }
  return look;
}

}  // namespace

bool looks_at_runtimes(const PlanOptions& options, const cluster::Fleet& fleet) {
  return options.look_at_runtimes && options.target == runtime::Target::kGeneric &&
         options.search.placement == compose::EncoderPlacement::kAny && fleet.gpu_count() <= kMostGpusLookedAt;
}

std::vector<plan::RuntimeLook> look_at_runtimes(std::vector<compose::Composition> near, const cluster::Fleet& fleet,
                                                const model::Model& model, const PlanOptions& options,
                                                const compose::ProgressCallback& progress) {
  const PlanOptions own = look_options(near, options);
  std::vector<plan::RuntimeLook> result;
  for (const runtime::Runtime& runtime : runtime::runtimes()) {
    if (runtime.target == runtime::Target::kGeneric ||
        (runtime.has(runtime::Rule::kWholeEncoders) && model::encoder_blocks(model) == 0))
      continue;
    result.push_back(look_at(runtime, near, fleet, model, own, progress));
  }
  return result;
}

}  // namespace tangram::planner
