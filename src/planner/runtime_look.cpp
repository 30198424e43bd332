#include "runtime_look.hpp"

#include <algorithm>
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
  options = for_any_runtime(std::move(options));
  options.parallelizers.clear();
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

/// The fastest of a runtime's plans, as simulated; 0: there is none.
Nanoseconds fastest_of(const Planning& planning, const compose::SearchResult& found) {
  Nanoseconds fastest;
  for (const compose::Composition& composition : found.shortlist()) {
    const auto time = planning.simulated_time(composition);
    fastest = faster_of(fastest, time.value_or(Nanoseconds(0)));
  }
  return fastest;
}

class RuntimeLooks {
 public:
  RuntimeLooks(const plan::LaunchPlan& plan, const std::vector<compose::Composition>& near, const cluster::Fleet& fleet,
               const model::Model& model, const PlanOptions& options, const compose::ProgressCallback& progress)
      : plan_(plan), fleet_(fleet), model_(model), options_(look_options(near, options)), progress_(progress) {}

  plan::RuntimeLook at(const runtime::Runtime& runtime) const {
    plan::RuntimeLook look{std::string(runtime.name), Nanoseconds(0), ""};
    if (const auto refused = plan::model_refusals(runtime.target, model_); !refused.empty()) {
      look.why_not = refused.front().text;
      return look;
    }
    PlanOptions options = options_;
    options.target = runtime.target;
    const Deadline& deadline = options.search.deadline;
    if (!deadline.has_passed()) {
      const auto own = as_run(model_, options);
      const Planning planning(fleet_, own ? own->model() : model_, own ? own->options() : options, progress_);
      look.iteration = fastest_of(planning, planning.search_by_time());
    }
    if (reasons_against(plan_, runtime.target).empty()) {
      look.iteration = faster_of(look.iteration, own_time(runtime.target));
    }
    if (look.iteration == Nanoseconds(0)) {
      look.why_not = deadline.is_missed() ? "no plan was found in time" : "no plan was found";
    }
    return look;
  }

 private:
  /// Of the plan at hand, run by a runtime that takes it.
  Nanoseconds own_time(runtime::Target target) const {
    const simulate::Transfers transfers = runtime::runtime_of(target).semantics_of(plan_.schedule()).transfers;
    const simulate::Result result = simulate::simulate(simulate::schedule_of(plan_, transfers));
    return result.deadlock ? Nanoseconds(0) : result.iteration;
  }

  const plan::LaunchPlan& plan_;
  const cluster::Fleet& fleet_;
  const model::Model& model_;
  const PlanOptions options_;
  const compose::ProgressCallback& progress_;
};

}  // namespace

bool looks_at_runtimes(const PlanOptions& options, const cluster::Fleet& fleet) {
  return options.look_at_runtimes && options.target == runtime::Target::kGeneric &&
         options.search.placement == compose::EncoderPlacement::kAny && fleet.gpu_count() <= kMostGpusLookedAt;
}

bool looks_at_any_runtime(const PlanOptions& options, const cluster::Fleet& fleet) {
  return options.target != runtime::Target::kGeneric && fleet.gpu_count() <= kMostGpusLookedAt;
}

std::vector<plan::RuntimeLook> look_at_runtimes(const plan::LaunchPlan& plan,
                                                const std::vector<compose::Composition>& near,
                                                const cluster::Fleet& fleet, const model::Model& model,
                                                const PlanOptions& options, const compose::ProgressCallback& progress) {
  const RuntimeLooks looks(plan, near, fleet, model, options, progress);
  std::vector<plan::RuntimeLook> result;
  for (const runtime::Runtime& runtime : runtime::runtimes()) {
    if (runtime.target == runtime::Target::kGeneric ||
        (runtime.has(runtime::Rule::kWholeEncoders) && model::encoder_blocks(model) == 0))
      continue;
    result.push_back(looks.at(runtime));
  }
  return result;
}

}  // namespace tangram::planner
