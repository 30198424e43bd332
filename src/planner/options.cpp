#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "option_values.hpp"
#include "planning.hpp"
#include "prediction.hpp"
#include "pricer.hpp"
#include "provenance.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/objective/remedies.hpp"
#include "tangram/parallelizer/registry.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/planner/option_gains.hpp"

namespace tangram::planner {

namespace {

using model::ExecutionOption;
using model::Job;
using Rank = Pricer::Rank;

constexpr double kLeastGain = 0.001;          // what a change of options has to gain: less is nothing
constexpr std::size_t kPricedPlans = 4;       // of a search, with other options
constexpr std::int64_t kLookLabels = 10'000;  // of a search for something better
constexpr double kAnyOfThem = 0.99;           // a search ends with the first plan that is better

model::Model with_job(model::Model model, const Job& job) {
  model.job = job;
  return model;
}

std::vector<ExecutionOption> members_of(const model::OptionSet& set) {
  std::vector<ExecutionOption> members;
  for (const model::OptionName& each : model::option_names()) {
    if (set.has(each.option)) members.push_back(each.option);
  }
  return members;
}

bool is_better(const Rank& a, const Rank& b) {
  const double enough = 1 - kLeastGain;
  return a.first < b.first * enough || (a.first <= b.first && a.second < b.second * enough);
}

/// Plans of one job, best first.
struct Found {
  Job job;
  std::vector<plan::LaunchPlan> plans;
};

cluster::Fleet with_memory(cluster::Fleet fleet) {
  constexpr Bytes kEnough(std::int64_t{1} << 50);
  for (cluster::Node& node : fleet.nodes) {
    for (cluster::DeviceGroup& group : node.groups) group.device.memory = kEnough;
  }
  return fleet;
}

/// The plan itself needs time as well: of a limit in seconds, half.
Deadline deadline_of_choice(const Deadline& whole) {
  if (whole.seconds() == 0) return whole;
  const Deadline half = Deadline::in(whole.seconds() / 2);
  return Deadline([whole, half] { return half.has_passed() || whole.has_passed(); }, whole.seconds());
}

class OptionChooser {
 public:
  OptionChooser(const cluster::Fleet& fleet, const model::Model& model, const model::OptionSet& free,
                const PlanOptions& options, const compose::ProgressCallback& progress)
      : fleet_(fleet),
        roomy_(with_memory(fleet)),
        model_(model),
        free_(members_of(free)),
        options_(look_options(options)),
        progress_(progress),
        pricer_(fleet, options_) {}

  /// Of the best plan without changes; nullopt: none was found.
  [[nodiscard]] std::optional<Rank> given() const { return given_; }
  /// Seconds of a time limit that ended the choice; 0: none did.
  [[nodiscard]] double missed_seconds() const { return options_.search.deadline.missed_seconds(); }

  Job run() {
    best_ = search(model_.job);
    if (!best_.plans.empty()) given_ = pricer_.rank(best_.plans.front());
    if (best_.plans.empty() && options_.request.longest_iteration) search_fastest();
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
    options.search.deadline = deadline_of_choice(options.search.deadline);
    return options;
  }

  void sort(std::vector<plan::LaunchPlan>& plans) const {
    std::ranges::stable_sort(plans, {}, [&](const plan::LaunchPlan& plan) { return pricer_.rank(plan); });
  }

  [[nodiscard]] Found search(const Job& job) const { return search(job, options_); }

  [[nodiscard]] Found search(const Job& job, const PlanOptions& options) const {
    Found found{job, {}};
    const ForModel own(with_job(model_, job), options);
    const Planning planning(fleet_, own.model(), own.options(), progress_);
    for (const compose::Composition& composition : planning.search_best().found.shortlist()) {
      auto plan = planning.assemble(composition);
      if (!plan || !reasons_against(*plan, options.target).empty() || !predict(*plan, fleet_, options)) continue;
      found.plans.push_back(std::move(*plan));
    }
    sort(found.plans);
    return found;
  }

  /// Of a search for plans that are better than the best so far.
  [[nodiscard]] PlanOptions look_for_better() const {
    PlanOptions options = options_;
    if (options.request.objective != objective::Objective::kThroughput) return options;
    const double enough = best_.plans.front().predicted.closed_form.as_double() * (1 - kLeastGain);
    options.search.incumbent = std::min(options.search.incumbent, Nanoseconds(static_cast<std::int64_t>(enough)));
    options.search.accepted_gap = std::max(options.search.accepted_gap, kLeastGain);
    options.search.relaxed_bound = Nanoseconds(0);  // nobody asks how far it is from the best
    options.search.label_budget = std::min(options.search.label_budget, kLookLabels);
    return options;
  }

  [[nodiscard]] bool is_free(ExecutionOption option) const { return std::ranges::find(free_, option) != free_.end(); }

  [[nodiscard]] std::vector<Job> changed(const Job& from, ExecutionOption option) const {
    std::vector<Job> jobs = with_other_values(with_job(model_, from), option);
    std::erase_if(
        jobs, [&](const Job& job) { return !plan::model_refusals(options_.target, with_job(model_, job)).empty(); });
    return jobs;
  }

  template <class Wanted>
  [[nodiscard]] std::vector<Job> single_changes(const Job& from, Wanted wanted) const {
    std::vector<Job> jobs;
    for (const ExecutionOption option : free_) {
      if (!wanted(option)) continue;
      for (Job& job : changed(from, option)) jobs.push_back(std::move(job));
    }
    return jobs;
  }

  /// Of the plans at hand, priced with this job, best first.
  [[nodiscard]] Found priced(const Job& job) const {
    Found found{job, {}};
    for (std::size_t i = 0; i < std::min(best_.plans.size(), kPricedPlans); ++i) {
      if (auto plan = pricer_.priced(best_.plans[i], job)) found.plans.push_back(std::move(*plan));
    }
    sort(found.plans);
    return found;
  }

  [[nodiscard]] bool beats(const Found& found, const Found& other) const {
    return !found.plans.empty() && is_better(pricer_.rank(found.plans.front()), pricer_.rank(other.plans.front()));
  }

  /// Of one change, by pricing.
  [[nodiscard]] std::optional<Found> better_by_one(const Found& now) const {
    std::optional<Found> best;
    for (const Job& job : single_changes(now.job, [](ExecutionOption) { return true; })) {
      Found found = priced(job);
      if (beats(found, best ? *best : now)) best = std::move(found);
    }
    return best;
  }

  bool raise_by_pricing() {
    std::optional<Found> now;
    while (auto better = better_by_one(now ? *now : best_)) now = std::move(better);
    if (!now) return false;
    best_ = std::move(*now);
    take_if_better(best_.job);
    return true;
  }

  /// Jobs with other options of memory are searched for where plans would be better if they had all that they want,
  /// and those with others where all of these together make better ones.
  bool raise_by_search() {
    if (options_.request.objective != objective::Objective::kThroughput) return false;  // there is no bound on others
    const Job from = best_.job;
    std::vector<Job> jobs{from};
    if (may_be_better(from, roomy_)) std::ranges::move(single_changes(from, is_of_memory), std::back_inserter(jobs));
    bool raised = false;
    for (const Job& job : jobs) {
      if (options_.search.deadline.has_passed() || !may_be_better(job, fleet_)) continue;
      if (job != from) raised |= take_if_better(job);
      const auto is_other = [](ExecutionOption option) { return !is_of_memory(option); };
      for (const Job& each : single_changes(job, is_other)) raised |= take_if_better(each);
    }
    return raised;
  }

  /// Whether any plan is better with the fastest values of the options that take no more memory, whatever is recomputed
  /// beside them: with exchanges of experts beside passes, where pipelines are interleaved, or without.
  [[nodiscard]] bool may_be_better(Job job, const cluster::Fleet& fleet) const {
    const bool experts = model_.has_experts();
    if (is_free(ExecutionOption::kCudaGraphs)) {
      job.cuda_graphs = experts ? model::kGraphsOfBlocks : model::kGraphOfStep;
    }
    if (is_free(ExecutionOption::kExpertDispatch)) job.expert_dispatch = model::ExpertDispatch::kDeepEp;
    if (is_free(ExecutionOption::kGatherOverlap)) job.overlap_gather = true;
    if (is_free(ExecutionOption::kTensorOverlap)) job.overlap_tp = true;
    if (is_free(ExecutionOption::kFusedLoss)) job.fused_loss = model::FusedLoss::kTransformerEngine;
    std::vector<Job> jobs{job};
    if (is_free(ExecutionOption::kContextExchange)) {
      std::ranges::move(changed(job, ExecutionOption::kContextExchange), std::back_inserter(jobs));
    }
    return std::ranges::any_of(jobs, [&](const Job& each) { return may_be_better_by_overlap(each, fleet); });
  }

  /// With exchanges of experts beside passes, where that is free, or as they are.
  [[nodiscard]] bool may_be_better_by_overlap(Job job, const cluster::Fleet& fleet) const {
    if (!is_free(ExecutionOption::kExpertOverlap)) return has_better(job, fleet);
    job.overlap_experts = true;
    if (has_better(job, fleet)) return true;
    job.overlap_experts = false;
    return has_better(job, fleet);
  }

  [[nodiscard]] bool has_better(const Job& job, const cluster::Fleet& fleet) const {
    PlanOptions options = look_for_better();
    options.search.lifted = runtime::Rule::kRecomputeAlone;
    options.search.accepted_gap = kAnyOfThem;
    const ForModel own(with_job(model_, job), options);
    return !Planning(fleet, own.model(), own.options(), progress_).search_by_time().best.empty();
  }

  bool take_if_better(const Job& job) {
    if (options_.search.deadline.has_passed()) return false;
    Found found = search(job, look_for_better());
    if (!beats(found, best_)) return false;
    best_ = std::move(found);
    return true;
  }

  /// Options that make a plan faster may bring it below a limit that none keeps.
  void search_fastest() {
    options_.request.objective = objective::Objective::kThroughput;
    options_.request.longest_iteration.reset();
    best_ = search(model_.job);
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
  const cluster::Fleet roomy_;  // the same with more memory than any plan wants
  const model::Model& model_;
  const std::vector<ExecutionOption> free_;
  PlanOptions options_;
  const compose::ProgressCallback& progress_;
  const Pricer pricer_;
  Found best_;
  std::optional<Rank> given_;
};

std::string needs_note(const plan::LaunchPlan& plan) {
  std::vector<std::string_view> needs;
  for (const plan::ChosenOption& chosen : plan.provenance.options) {
    const std::string_view need = needed_for(chosen.option, plan.model.job);
    if (!need.empty() && std::ranges::find(needs, need) == needs.end()) needs.push_back(need);
  }
  if (plan.provenance.options.empty()) return "no execution options were found to be faster than the job's own";
  return needs.empty() ? "" : fmt::format("the chosen options need {}", fmt::join(needs, ", "));
}

void note_time_limit(double seconds, plan::PlanProvenance& provenance) {
  if (seconds == 0) return;
  provenance.time_limit = seconds;
  add_note(provenance.note,
           fmt::format("half the time limit of {:g} s stopped the choice of execution options: another run may find "
                       "better ones",
                       seconds));
}

bool has_plugins(const PlanOptions& options) {
  return !std::ranges::all_of(options.parallelizers, [](const auto* each) { return each->info().built_in; });
}

std::string nothing_to_choose(const PlanOptions& options) {
  const runtime::Target target = options.target;
  const runtime::Runtime& runtime = runtime::runtime_of(target);
  if (has_plugins(options)) return "execution options are as the job has them: plugins plan for no others";
  if (runtime.takes_options) return "none of the execution options that the job leaves free bears on it";
  return fmt::format("execution options are as the job has them: {}",
                     target == runtime::Target::kGeneric ? "none is chosen without --target"
                                                         : fmt::format("{} takes none as arguments", runtime.title));
}

struct Choice {
  model::Model model;
  std::optional<Rank> given = {};  ///< of the best plan without changes
  double time_limit = 0;           ///< seconds that ended the choice
};

Choice choose(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
              const compose::ProgressCallback& progress) {
  const model::Model given = model::settled(model, model.job);
  const model::OptionSet free = choosable_options(model, options.target);
  const bool refused = !plan::model_refusals(options.target, given).empty() || !check_prices(options.request, fleet);
  if (free.empty() || refused || has_plugins(options)) return {given};  // make_plan says why
  OptionChooser chooser(fleet, given, free, options, progress);
  const Job job = chooser.run();
  return {with_job(given, job), chooser.given(), chooser.missed_seconds()};
}

}  // namespace

ForModel::ForModel(model::Model model, PlanOptions options) : model_(std::move(model)), options_(std::move(options)) {
  for (const parallelizer::Parallelizer*& each : options_.parallelizers) {
    const parallelizer::BuiltIn* const built_in = parallelizer::find_built_in(each->info().name);
    if (!each->info().built_in || built_in == nullptr) continue;
    owned_.push_back(built_in->make(model_, options_.search.profiles));
    each = owned_.back().get();
  }
}

std::unique_ptr<const ForModel> as_run(const model::Model& model, const PlanOptions& options) {
  const Job job = plan::as_run_by(options.target, model.job);
  return job == model.job ? nullptr : std::make_unique<const ForModel>(with_job(model, job), options);
}

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

void note_options(plan::LaunchPlan& plan, const Job& given, const cluster::Fleet& fleet, const PlanOptions& options) {
  plan.provenance.options = option_gains(plan, given, fleet, options);
  add_note(plan.provenance.note, needs_note(plan));
}

Expected<Planned> plan_with_free_options(const cluster::Fleet& fleet, const model::Model& model,
                                         const PlanOptions& options, const compose::ProgressCallback& progress) {
  const model::Model given = model::settled(model, model.job);
  const Choice choice = choose(fleet, model, options, progress);
  const ForModel chosen(choice.model, options);
  auto planned = make_plan(fleet, chosen.model(), chosen.options(), progress);
  const bool is_worse =
      planned && choice.given && !options.choose && rank_of(planned->plan, options.request.objective) > *choice.given;
  if (is_worse || (!planned && choice.given)) planned = make_plan(fleet, given, options, progress);
  if (!planned) return planned;
  if (has_plugins(options) || choosable_options(model, options.target).empty()) {
    add_note(planned->plan.provenance.note, nothing_to_choose(options));
  } else {
    note_options(planned->plan, given.job, fleet, options);
  }
  note_time_limit(choice.time_limit, planned->plan.provenance);
  return planned;
}

}  // namespace tangram::planner
