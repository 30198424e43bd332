#include "tangram/planner/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <set>

#include "options.hpp"
#include "tangram/baseline/formulas.hpp"
#include "tangram/baseline/results.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/model/techniques.hpp"

namespace tangram::planner {

namespace {

/// What planners for mixed fleets leave out, as --forbid names it.
constexpr std::array kTechniques{"ep", "cp", "sp", "zero", "recompute", "mixed_stages", "replicas", "interleaving"};
/// The space of Metis and Sailor: mixed stages are theirs as well.
constexpr std::array kTheirs{"ep", "cp", "sp", "zero", "recompute", "replicas", "interleaving"};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool uses(const plan::LaunchPlan& plan, std::string_view technique) {
  if (technique == "replicas") return plan.pipelines.size() > 1;
  if (technique == "interleaving") return plan.is_interleaved();
  const auto any = [&](const auto& wanted) {
    return std::ranges::any_of(plan.stages,
                               [&](const plan::Stage& stage) { return std::ranges::any_of(stage.parts, wanted); });
  };
  if (technique == "mixed_stages") {
    return std::ranges::any_of(plan.stages, [](const plan::Stage& stage) { return stage.parts.size() > 1; });
  }
  return any([&](const plan::Part& part) {
    const cost::Strategy& s = part.strategy;
    if (technique == "ep") return s.degrees.ep > 1;
    if (technique == "cp") return s.degrees.cp > 1;
    if (technique == "sp") return s.degrees.sequence_parallel;
    const auto in_runs = [&](const auto& wanted) { return std::ranges::any_of(s.policy.runs, wanted); };
    if (technique == "zero") {
      return s.policy.zero > 0 || in_runs([](const cost::BlockRun& run) { return run.policy.zero > 0; });
    }
    return s.policy.recompute != cost::RecomputeMode::kNone ||
           in_runs([](const cost::BlockRun& run) { return run.policy.recompute != cost::RecomputeMode::kNone; });
  });
}

class Comparer {
 public:
  Comparer(const cluster::Fleet& fleet, const model::Model& model, const CompareOptions& options,
           const compose::ProgressCallback& progress)
      : fleet_(fleet),
        model_(model),
        options_(options),
        progress_(progress),
        hierarchy_(cluster::find_islands(fleet, options.plan.island_tolerance)),
        input_(baseline::read_input(fleet, model, options.plan.search.profiles)) {
    options_.plan.look_at_runtimes = false;
  }

  Expected<Comparison> run() {
    Comparison comparison;
    const double start = cpu_seconds();
    auto planned = make_plan(fleet_, model_, options_.plan, progress_);
    if (!planned) return fail(std::move(planned.error()));
    comparison.planning_s = cpu_seconds() - start;
    comparison.ours = std::move(planned->plan);
    comparison.search_finished = planned->search_finished;
    comparison.labels = planned->statistics.labels;
    if (auto wrong = add_given(comparison); !wrong.empty()) return fail(std::move(wrong));
    add_placements(comparison);
    add_planners(comparison);
    if (options_.ablation) add_ablation(comparison);
    add_formulas(comparison);
    comparison.time_limit = deadline().missed_seconds();
    return comparison;
  }

 private:
  void report_phase(std::string phase) const {
    if (progress_) progress_({0, 0, std::move(phase), Nanoseconds::max()});
  }

  [[nodiscard]] baseline::Judge judge() const {
    return {fleet_,
            hierarchy_,
            model_,
            options_.plan.search.profiles,
            cost::fleet_peak(fleet_, model_.job.precision),
            options_.plan.target};
  }

  void add_placements(Comparison& comparison) const {
    for (const compose::EncoderPlacement placement : options_.placements) {
      if (deadline().has_passed()) return;
      report_phase(fmt::format("planning with encoders {}", to_string(placement)));
      PlanOptions options = options_.plan;
      options.search.placement = placement;
      ComparedPlanner line;
      line.name = to_string(placement);
      line.mode = "placement";
      line.summary = "Tangram's own search, with the encoders placed so";
      const double start = cpu_seconds();
      auto planned = make_plan(fleet_, model_, options, progress_);
      line.planning_s = cpu_seconds() - start;
      if (planned) {
        line.effort.examined = planned->statistics.labels;
        line.verdict.judged.push_back(baseline::judge(std::move(planned->plan), judge()));
      } else {
        line.notes.push_back(planned.error().front().message);
      }
      comparison.planners.push_back(std::move(line));
    }
  }

  void add_planners(Comparison& comparison) const {
    for (const std::string& name : options_.planners) {
      const auto planner = baseline::make_planner(name);
      for (const baseline::Mode mode : options_.modes) {
        if (deadline().has_passed()) return;
        report_phase(fmt::format("planning as {} ({})", name, baseline::to_string(mode)));
        ComparedPlanner line;
        line.name = name;
        line.mode = baseline::to_string(mode);
        line.summary = planner->info().summary;
        line.lacks.assign(planner->info().lacks.begin(), planner->info().lacks.end());
        const double start = cpu_seconds();
        const baseline::Proposals proposals = planner->propose(input_, mode, {});
        line.planning_s = cpu_seconds() - start;
        line.effort = proposals.effort;
        line.notes = proposals.notes;
        line.verdict = baseline::first_usable(proposals, input_, judge());
        comparison.planners.push_back(std::move(line));
      }
    }
  }

  /// Plans from outside; what is wrong with their files.
  Diagnostics add_given(Comparison& comparison) const {
    Diagnostics wrong;
    for (const GivenPlan& given : options_.plans) {
      ComparedPlanner line;
      line.name = given.file;
      line.mode = "given";
      if (given.text.find("\"tangram.launch_plan/1\"") != std::string::npos) {
        auto plan = plan::read_plan(given.text, given.file);
        if (plan) line.verdict.judged.push_back(baseline::judge(std::move(*plan), judge()));
        if (!plan) wrong.insert(wrong.end(), plan.error().begin(), plan.error().end());
      } else {
        auto results = baseline::judge_results(given.text, given.file, input_, judge());
        if (results) line.verdict = std::move(results->verdict);
        if (!results) wrong.insert(wrong.end(), results.error().begin(), results.error().end());
      }
      comparison.planners.push_back(std::move(line));
    }
    return wrong;
  }

  [[nodiscard]] const Deadline& deadline() const { return options_.plan.search.deadline; }

  void add_ablation(Comparison& comparison) {
    for (const char* technique : kTechniques) add_step(comparison, {technique});
    add_step(comparison, {kTheirs.begin(), kTheirs.end()});
  }

  void add_step(Comparison& comparison, std::vector<std::string> forbidden) {
    AblationStep step{std::move(forbidden), true, comparison.iteration_s()};
    step.used = std::ranges::any_of(step.forbidden, [&](const auto& name) { return uses(comparison.ours, name); });
    reduced_ = comparison.ours;
    if (step.used && !deadline().has_passed()) reduced_ = without(step.forbidden);
    if (deadline().is_missed()) {  // what it would have found is not known
      reduced_.reset();
      return;
    }
    step.iteration_s = reduced_ ? to_seconds(reduced_->predicted.iteration) : 0;
    comparison.ablation.push_back(std::move(step));
  }

  /// Our best plan without these, if there is one.
  std::optional<plan::LaunchPlan> without(const std::vector<std::string>& forbidden) const {
    report_phase(fmt::format("planning without {}", fmt::join(forbidden, ", ")));
    model::Model model = model_;
    for (const std::string& name : forbidden) static_cast<void>(model::set_technique(model.job.allow, name, false));
    auto planned = make_plan(fleet_, model, options_.plan, progress_);
    if (!planned) return std::nullopt;
    return std::move(planned->plan);
  }

  /// After the ablation, whose last step is the space of both planners.
  void add_formulas(Comparison& comparison) const {
    for (const ComparedPlanner& line : comparison.planners) {
      if (line.mode != baseline::to_string(baseline::Mode::kFaithful)) continue;
      if (!baseline::has_formula(line.name)) continue;
      const auto claim = [&](const plan::LaunchPlan* plan) {
        return plan == nullptr ? std::nullopt : baseline::claim_of(line.name, *plan, input_);
      };
      comparison.formulas.push_back(
          {line.name, claim(line.verdict.plan()), claim(&comparison.ours), claim(reduced_ ? &*reduced_ : nullptr)});
    }
  }

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  CompareOptions options_;
  const compose::ProgressCallback& progress_;
  cluster::IslandHierarchy hierarchy_;
  baseline::PlannerInput input_;
  std::optional<plan::LaunchPlan> reduced_;  // of the last step of the ablation
};

}  // namespace

double ComparedPlanner::iteration_s() const {
  const plan::LaunchPlan* plan = verdict.plan();
  return plan != nullptr ? to_seconds(plan->predicted.iteration) : std::numeric_limits<double>::infinity();
}

double Comparison::iteration_s() const { return to_seconds(ours.predicted.iteration); }

Expected<Comparison> compare(const cluster::Fleet& fleet, const model::Model& model, const CompareOptions& options,
                             const compose::ProgressCallback& progress) {
  const auto compare_as = [&](const ForModel& own) {
    CompareOptions with_own = options;
    with_own.plan = own.options();
    return compare(fleet, own.model(), with_own, progress);
  };
  if (const auto own = as_run(model, options.plan)) return compare_as(*own);
  if (!model.job.free_options.empty()) {
    const ForModel chosen(choose_options(fleet, model, options.plan, progress), options.plan);
    auto comparison = compare_as(chosen);
    if (comparison) note_options(comparison->ours, model.job, fleet, options.plan);
    return comparison;
  }
  return Comparer(fleet, model, options, progress).run();
}

}  // namespace tangram::planner
