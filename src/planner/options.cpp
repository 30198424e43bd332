#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planning.hpp"
#include "prediction.hpp"
#include "provenance.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/objective/remedies.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::planner {

namespace {

using model::ExecutionOption;
using model::Job;
using model::RecomputeModules;

constexpr double kLeastGain = 0.001;     // what a change of options has to gain: less is nothing
constexpr std::size_t kPricedPlans = 4;  // of a search, with other options

model::Model with_job(model::Model model, const Job& job) {
  model.job = job;
  return model;
}

RecomputeModules modules_of(const model::Model& model, const RecomputeModules& named) {
  model::Model other = model;
  other.job.recompute_modules = named;
  return model::recomputed_modules(other);
}

/// One module more or less, of those that the model has.
std::vector<Job> with_other_modules(const model::Model& model) {
  RecomputeModules all;
  for (const auto& [_, module] : model::kRecomputeModules) all.add(module);
  const RecomputeModules known = modules_of(model, all);
  const RecomputeModules now = model::recomputed_modules(model);
  const RecomputeModules usual = modules_of(model, {});
  std::vector<Job> jobs;
  for (const auto& [_, module] : model::kRecomputeModules) {
    if (!known.has(module)) continue;
    const RecomputeModules other = now.has(module) ? now.without(module) : now.with({module});
    if (other.empty()) continue;
    jobs.push_back(model.job);
    jobs.back().recompute_modules = other == usual ? RecomputeModules{} : other;
  }
  return jobs;
}

/// The job with each other value of the option.
std::vector<Job> with_other_values(const model::Model& model, ExecutionOption option) {
  std::vector<Job> jobs;
  const auto add = [&](auto member, auto... values) {
    for (const auto value : {values...}) {
      if (model.job.*member == value) continue;
      jobs.push_back(model.job);
      jobs.back().*member = value;
    }
  };
  switch (option) {
    case ExecutionOption::kCudaGraphs:
      add(&Job::cuda_graphs, model::CudaGraphs::kNone, model::CudaGraphs::kBlocks, model::CudaGraphs::kStep);
      break;
    case ExecutionOption::kExpertDispatch:
      add(&Job::expert_dispatch, model::ExpertDispatch::kAllToAll, model::ExpertDispatch::kDeepEp);
      break;
    case ExecutionOption::kExpertOverlap: add(&Job::overlap_experts, false, true); break;
    case ExecutionOption::kGatherOverlap: add(&Job::overlap_gather, false, true); break;
    case ExecutionOption::kTensorOverlap: add(&Job::overlap_tp, false, true); break;
    case ExecutionOption::kFusedLoss: add(&Job::fused_loss, false, true); break;
    case ExecutionOption::kRecomputeModules: return with_other_modules(model);
  }
  return jobs;
}

bool bears_on(ExecutionOption option, const model::Model& model) {
  const model::Techniques& allow = model.job.allow;
  switch (option) {
    case ExecutionOption::kExpertDispatch:
    case ExecutionOption::kExpertOverlap: return model.has_experts() && allow.ep;
    case ExecutionOption::kGatherOverlap: return allow.zero1;
    case ExecutionOption::kTensorOverlap: return allow.tp && allow.sp;
    case ExecutionOption::kRecomputeModules: return allow.recompute_selective;
    case ExecutionOption::kCudaGraphs:
    case ExecutionOption::kFusedLoss: break;
  }
  return true;
}

/// Whether plans with other values need more or less memory.
bool is_of_memory(ExecutionOption option) {
  return option == ExecutionOption::kFusedLoss || option == ExecutionOption::kRecomputeModules;
}

std::vector<ExecutionOption> members_of(const model::OptionSet& set) {
  std::vector<ExecutionOption> members;
  for (const model::OptionName& each : model::option_names()) {
    if (set.has(each.option)) members.push_back(each.option);
  }
  return members;
}

using Rank = std::pair<double, double>;  // rank_of

bool is_better(const Rank& a, const Rank& b) {
  const double enough = 1 - kLeastGain;
  return a.first < b.first * enough || (a.first <= b.first && a.second < b.second * enough);
}

/// Plans of one job, best first.
struct Found {
  Job job;
  std::vector<plan::LaunchPlan> plans;
};

/// Prices plans with other options than they have.
class Pricer {
 public:
  Pricer(const cluster::Fleet& fleet, const PlanOptions& options) : fleet_(fleet), options_(options) {}

  /// The same plan with this job; nullopt: it does not fit, or the target refuses it.
  [[nodiscard]] std::optional<plan::LaunchPlan> priced(const plan::LaunchPlan& plan, const Job& job) const {
    plan::LaunchPlan variant = plan;
    variant.model.job = job;
    const evolve::RefitOptions how{options_.island_tolerance, options_.search.profiles};
    evolve::Refit refit = evolve::refit(variant, fleet_, variant.model, how);
    plan::LaunchPlan* const now = refit.fitting();
    if (now == nullptr || !reasons_against(*now, options_.target).empty()) return std::nullopt;
    price_for(options_.target, *now);
    if (!predict(*now, fleet_)) return std::nullopt;
    return std::move(*now);
  }

  [[nodiscard]] Rank rank(const plan::LaunchPlan& plan) const { return rank_of(plan, options_.request.objective); }

 private:
  const cluster::Fleet& fleet_;
  const PlanOptions& options_;
};

class OptionChooser {
 public:
  OptionChooser(const cluster::Fleet& fleet, const model::Model& model, const model::OptionSet& free,
                const PlanOptions& options, const compose::ProgressCallback& progress)
      : fleet_(fleet),
        model_(model),
        free_(members_of(free)),
        options_(look_options(options)),
        progress_(progress),
        pricer_(fleet, options_) {}

  /// Of the best plan without changes; nullopt: none was found.
  [[nodiscard]] std::optional<Rank> given() const { return given_; }

  Job run() {
    best_ = search(model_.job);
    if (!best_.plans.empty()) given_ = pricer_.rank(best_.plans.front());
    if (best_.plans.empty()) make_feasible();
    if (best_.plans.empty()) return model_.job;
    while (!options_.search.deadline.has_passed() && (raise_by_pricing() || raise_by_search())) {
    }
    return without_idle_options();
  }

 private:
  static PlanOptions look_options(PlanOptions options) {
    options.look_at_runtimes = false;
    options.look_at_colocated = false;
    options.near = nullptr;
    options.choose = {};
    return options;
  }

  void sort(std::vector<plan::LaunchPlan>& plans) const {
    std::ranges::stable_sort(plans, {}, [&](const plan::LaunchPlan& plan) { return pricer_.rank(plan); });
  }

  [[nodiscard]] Found search(const Job& job) const { return search(job, options_); }

  [[nodiscard]] Found search(const Job& job, const PlanOptions& options) const {
    Found found{job, {}};
    const model::Model model = with_job(model_, job);
    const Planning planning(fleet_, model, options, progress_);
    for (const compose::Composition& composition : planning.search_best().found.shortlist()) {
      auto plan = planning.assemble(composition);
      if (!plan || !reasons_against(*plan, options.target).empty() || !predict(*plan, fleet_)) continue;
      found.plans.push_back(std::move(*plan));
    }
    sort(found.plans);
    return found;
  }

  /// For plans that are better than the best so far.
  [[nodiscard]] Found search_better(const Job& job) const {
    PlanOptions options = options_;
    if (options.request.objective == objective::Objective::kThroughput) {
      const double enough = best_.plans.front().predicted.closed_form.as_double() * (1 - kLeastGain);
      options.search.incumbent = std::min(options.search.incumbent, Nanoseconds(static_cast<std::int64_t>(enough)));
      options.search.accepted_gap = std::max(options.search.accepted_gap, kLeastGain);
      options.search.relaxed_bound = Nanoseconds(0);  // nobody asks how far it is from the best
    }
    return search(job, options);
  }

  [[nodiscard]] std::vector<Job> changed(const Job& from, ExecutionOption option) const {
    std::vector<Job> jobs = with_other_values(with_job(model_, from), option);
    std::erase_if(
        jobs, [&](const Job& job) { return !plan::model_refusals(options_.target, with_job(model_, job)).empty(); });
    return jobs;
  }

  [[nodiscard]] std::vector<Job> single_changes(const Job& from) const {
    std::vector<Job> jobs;
    for (const ExecutionOption option : free_) {
      for (Job& job : changed(from, option)) jobs.push_back(std::move(job));
    }
    return jobs;
  }

  /// Of two options each.
  [[nodiscard]] std::vector<Job> double_changes(const Job& from) const {
    std::vector<Job> jobs;
    for (std::size_t a = 0; a < free_.size(); ++a) {
      for (const Job& one : with_other_values(with_job(model_, from), free_[a])) {
        for (std::size_t b = a + 1; b < free_.size(); ++b) {
          for (Job& job : changed(one, free_[b])) jobs.push_back(std::move(job));
        }
      }
    }
    return jobs;
  }

  /// Of the plans at hand, priced with this job; the best.
  [[nodiscard]] std::optional<plan::LaunchPlan> best_priced(const Job& job) const {
    std::vector<plan::LaunchPlan> plans;
    for (std::size_t i = 0; i < std::min(best_.plans.size(), kPricedPlans); ++i) {
      if (auto plan = pricer_.priced(best_.plans[i], job)) plans.push_back(std::move(*plan));
    }
    if (plans.empty()) return std::nullopt;
    sort(plans);
    return std::move(plans.front());
  }

  [[nodiscard]] std::optional<plan::LaunchPlan> better_by_one(const plan::LaunchPlan& now) const {
    std::optional<plan::LaunchPlan> best;
    for (const Job& job : single_changes(now.model.job)) {
      auto plan = best_priced(job);
      if (!plan || !is_better(pricer_.rank(*plan), pricer_.rank(best ? *best : now))) continue;
      best = std::move(plan);
    }
    return best;
  }

  bool raise_by_pricing() {
    std::optional<plan::LaunchPlan> now;
    while (auto better = better_by_one(now ? *now : best_.plans.front())) now = std::move(better);
    if (!now) return false;
    best_ = search(now->model.job);
    best_.plans.push_back(std::move(*now));
    sort(best_.plans);
    return true;
  }

  bool raise_by_search() {
    const Job from = best_.job;
    return take_best_of(single_changes(from)) || take_best_of(double_changes(from));
  }

  bool take_best_of(const std::vector<Job>& jobs) {
    bool taken = false;
    for (const Job& job : jobs) {
      if (options_.search.deadline.has_passed()) break;
      Found found = search_better(job);
      if (found.plans.empty()) continue;
      if (!is_better(pricer_.rank(found.plans.front()), pricer_.rank(best_.plans.front()))) continue;
      best_ = std::move(found);
      taken = true;
    }
    return taken;
  }

  /// With options that save memory, where that makes the job possible.
  void make_feasible() {
    std::vector<model::Model> models;
    for (const Job& job : memory_changes()) models.push_back(with_job(model_, job));
    const auto hierarchy = cluster::find_islands(fleet_, options_.island_tolerance);
    const auto first = objective::first_feasible(options_.target, models, hierarchy, options_.search);
    if (first) best_ = search(models[*first].job);
  }

  /// Fewest first.
  [[nodiscard]] std::vector<Job> memory_changes() const {
    std::vector<Job> jobs{model_.job};
    for (const ExecutionOption option : free_) {
      if (!is_of_memory(option)) continue;
      const std::size_t before = jobs.size();
      for (std::size_t i = 0; i < before; ++i) {
        for (Job& job : changed(jobs[i], option)) jobs.push_back(std::move(job));
      }
    }
    jobs.erase(jobs.begin());
    return jobs;
  }

  /// The best plan's job, with the values that it had of those options that the plan does without.
  [[nodiscard]] Job without_idle_options() const {
    plan::LaunchPlan plan = best_.plans.front();
    for (const ExecutionOption option : free_) {
      Job job = plan.model.job;
      model::copy_option(option, model_.job, job);
      if (job == plan.model.job) continue;
      auto without = pricer_.priced(plan, job);
      if (without && pricer_.rank(*without) <= pricer_.rank(plan)) plan = std::move(*without);
    }
    return plan.model.job;
  }

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  const std::vector<ExecutionOption> free_;
  const PlanOptions options_;
  const compose::ProgressCallback& progress_;
  const Pricer pricer_;
  Found best_;
  std::optional<Rank> given_;
};

/// What a runtime needs beside itself for the option's value.
std::string_view needed_for(ExecutionOption option, const Job& job) {
  switch (option) {
    case ExecutionOption::kCudaGraphs:
      return job.cuda_graphs == model::CudaGraphs::kStep ? "training without checks for NaN" : "Transformer Engine";
    case ExecutionOption::kExpertDispatch: return "DeepEP";
    case ExecutionOption::kExpertOverlap: return "PyTorch 2.6";
    case ExecutionOption::kTensorOverlap: return "Transformer Engine";
    case ExecutionOption::kFusedLoss: return "Transformer Engine and Megatron-LM before 0.19";
    case ExecutionOption::kGatherOverlap:
    case ExecutionOption::kRecomputeModules: break;
  }
  return "";
}

std::string needs_note(const plan::LaunchPlan& plan) {
  std::vector<std::string_view> needs;
  for (const plan::ChosenOption& chosen : plan.provenance.options) {
    const std::string_view need = needed_for(chosen.option, plan.model.job);
    if (!need.empty() && std::ranges::find(needs, need) == needs.end()) needs.push_back(need);
  }
  return needs.empty() ? "" : fmt::format("the chosen options need {}", fmt::join(needs, ", "));
}

/// What each option that is not as the job has it gains.
std::vector<plan::ChosenOption> gains_of(const plan::LaunchPlan& plan, const Job& given, const cluster::Fleet& fleet,
                                         const PlanOptions& options) {
  const Pricer pricer(fleet, options);
  std::vector<plan::ChosenOption> all;
  for (const model::OptionName& each : model::option_names()) {
    Job job = plan.model.job;
    model::copy_option(each.option, given, job);
    if (job == plan.model.job) continue;
    plan::ChosenOption chosen{each.option, model::value_of(each.option, plan.model.job), std::nullopt};
    if (const auto without = pricer.priced(plan, job)) {
      chosen.gain = 1 - plan.predicted.iteration.as_double() / without->predicted.iteration.as_double();
    }
    all.push_back(std::move(chosen));
  }
  return all;
}

std::string nothing_to_choose(runtime::Target target) {
  const runtime::Runtime& runtime = runtime::runtime_of(target);
  return runtime.takes_options
             ? "none of the execution options that the job leaves free bears on it"
             : fmt::format("execution options are as the job has them: {} takes none as arguments", runtime.title);
}

struct Choice {
  model::Model model;
  std::optional<Rank> given;  ///< of the best plan without changes
};

Choice choose(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
              const compose::ProgressCallback& progress) {
  const model::Model given = model::settled(model, model.job);
  const model::OptionSet free = choosable_options(model, options.target);
  const bool refused = !plan::model_refusals(options.target, given).empty() || !check_prices(options.request, fleet);
  if (free.empty() || refused) return {given, std::nullopt};  // make_plan says why
  OptionChooser chooser(fleet, given, free, options, progress);
  const Job job = chooser.run();
  return {with_job(given, job), chooser.given()};
}

}  // namespace

model::OptionSet choosable_options(const model::Model& model, runtime::Target target) {
  model::OptionSet set;
  if (!runtime::runtime_of(target).takes_options) return set;
  for (const model::OptionName& each : model::option_names()) {
    if (model.job.free_options.has(each.option) && bears_on(each.option, model)) set.add(each.option);
  }
  return set;
}

model::Model choose_options(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                            const compose::ProgressCallback& progress) {
  return choose(fleet, model, options, progress).model;
}

Expected<Planned> plan_with_free_options(const cluster::Fleet& fleet, const model::Model& model,
                                         const PlanOptions& options, const compose::ProgressCallback& progress) {
  const model::Model given = model::settled(model, model.job);
  const Choice choice = choose(fleet, model, options, progress);
  auto planned = make_plan(fleet, choice.model, options, progress);
  const bool is_worse =
      planned && choice.given && !options.choose && rank_of(planned->plan, options.request.objective) > *choice.given;
  if (is_worse || (!planned && choice.given)) planned = make_plan(fleet, given, options, progress);
  if (!planned) return planned;
  plan::PlanProvenance& provenance = planned->plan.provenance;
  if (choosable_options(model, options.target).empty()) add_note(provenance.note, nothing_to_choose(options.target));
  provenance.options = gains_of(planned->plan, given.job, fleet, options);
  add_note(provenance.note, needs_note(planned->plan));
  return planned;
}

}  // namespace tangram::planner
