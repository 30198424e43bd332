#include "tangram/compose/search.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "batch.hpp"
#include "fastest_chains.hpp"
#include "ordered_pipeline.hpp"
#include "shortage.hpp"
#include "space.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/chain/radices.hpp"
#include "tangram/relax/relaxed_bound.hpp"

namespace tangram::compose {

namespace {

// A program whose best plan may be of interest.
struct Task {
  Setting setting;
  std::int64_t bound = 0;  // none of its plans is faster
};

class Searcher {
 public:
  Searcher(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
           std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
           const ProgressCallback& progress)
      : model_(model),
        hierarchy_(hierarchy),
        parallelizers_(parallelizers),
        options_(options),
        tuning_(options.tuning.programs),
        progress_(progress),
        batches_(model, hierarchy, parallelizers, options),
        incumbent_(options.incumbent.value()),
        fastest_(is_small() ? static_cast<std::size_t>(tuning_.last_starts) : 1) {}

  SearchResult run() {
    if (has_too_many_classes()) return std::move(result_);
    list_space();
    for (const parallelizer::Parallelizer* p : parallelizers_) result_.parallelizers.emplace_back().info = p->info();
    tbb::task_group beside;
    beside.run([this] { result_.relaxed_bound = options_.relaxed_bound ? *options_.relaxed_bound : without_search(); });
    if (least_state(model_) <= usable_memory(hierarchy_.levels.front())) {  // else no sharding helps
      search_programs();
    }
    beside.wait();
    conclude();
    return std::move(result_);
  }

 private:
  // States count the units of every class.
  [[nodiscard]] bool has_too_many_classes() {
    std::size_t most = 0;
    for (const cluster::IslandLevel& level : hierarchy_.levels) most = std::max(most, level.classes.size());
    if (most <= chain::kMostClasses) return false;
    result_.infeasible = {problem(ErrorKind::kInput, "too-many-classes",
                                  "the fleet has " + std::to_string(most) + " kinds of islands, at most " +
                                      std::to_string(chain::kMostClasses) + " can be told apart",
                                  "let GPUs that differ little count as alike with a larger --tolerance")};
    return true;
  }

  void search_programs() {
    if (tuning_.first_look) look_first();
    accept_gap();
    std::vector<Task> unfinished;
    solve_sizes(unfinished);
    finish(std::move(unfinished));
    if (is_worth_timetables()) look_for_timetables();
    if (tuning_.last_local_search) improve_fastest();
  }

  void look_first() {
    const std::int64_t likely = likely_time();
    first_look_within(likely);
    if (result_.best.empty() && likely < incumbent_) first_look_within(incumbent_);
  }

  [[nodiscard]] bool is_worth_timetables() const {
    return tuning_.small_fleet_timetables && options_.timed && !result_.best.empty() && is_small();
  }

  [[nodiscard]] bool is_small() const {
    return gpu_count(hierarchy_.levels.front(), options_.constraints.gpu_types) <= tuning_.timetable_gpus;
  }

  // Programs none of whose closed forms is the best may hold the fastest timetable. On small fleets, where few
  // microbatches fill a pipeline and the two differ most, all within reach are looked at once more.
  void look_for_timetables() {
    const auto reach = static_cast<std::int64_t>((1 + tuning_.timetable_reach) * static_cast<double>(best_so_far()));
    for (const SizeSettings& size : sizes_) {
      if (is_late()) return;
      Batch batch = batches_.prepare(size.settings, reach);
      Goal goal = goal_now(accepted_gap_, 0);
      goal.incumbent = reach;
      goal.only_timetables = true;
      tbb::parallel_for(std::size_t{0}, batch.candidates.size(),
                        [&](std::size_t i) { batches_.solve(batch.candidates[i], *batch.store, goal); });
      count_queries(*batch.store);
      for (CandidateProgram& candidate : batch.candidates) take_timed(candidate, batch.store);
    }
  }

  // While one size is solved the next ones are prepared, by what is known before them all.
  void solve_sizes(std::vector<Task>& unfinished) {
    struct SolveRecord {
      std::size_t size = 0;
      std::int64_t incumbent = 0;
      Batch batch;
    };
    std::vector<std::int64_t> after(sizes_.size() + 1, incumbent_);  // [n] once the first n sizes are solved
    const auto at_once = static_cast<std::size_t>(tuning_.sizes_at_once);
    std::size_t next = 0;
    const auto begin = [&]() -> std::optional<SolveRecord> {
      if (next == sizes_.size() || is_late()) return std::nullopt;
      const std::int64_t incumbent = after[next < at_once ? 0 : next + 1 - at_once];
      return SolveRecord{next++, incumbent, {}};
    };
    const auto work = [&](SolveRecord& record) {
      record.batch = batches_.prepare(sizes_[record.size].settings, record.incumbent);
    };
    const auto end = [&](SolveRecord& record) {
      solve(record.batch, first_pass(), unfinished);
      after[record.size + 1] = incumbent_;
    };
    run_in_order<SolveRecord>(at_once, begin, work, end);
    for (; next < sizes_.size(); ++next) leave_open(sizes_[next].settings, unfinished);
  }

  // Nothing is known of them.
  void leave_open(const std::vector<Setting>& settings, std::vector<Task>& unfinished) {
    for (const Setting& setting : settings) add({setting, 0}, unfinished);
  }

  [[nodiscard]] Nanoseconds without_search() const {
    return relax::relaxed_bound(model_, hierarchy_, are_modelled(parallelizers_), options_.profiles,
                                options_.tuning.bound, options_.deadline);
  }

  [[nodiscard]] std::int64_t first_pass() const {
    return std::clamp<std::int64_t>(options_.label_budget / tuning_.first_pass_share, 1, tuning_.first_pass);
  }

  void list_space() {
    result_.space = name_space(model_.job, hierarchy_, options_);
    for (const cluster::IslandLevel& level : hierarchy_.levels) {
      int islands = 0;
      for (const cluster::IslandClass& c : level.classes) islands += static_cast<int>(c.islands.size());
      result_.levels.push_back({level.name, static_cast<int>(level.classes.size()), islands});
    }
    sizes_ = settings_by_size(model_, hierarchy_, options_);
    for (const SizeSettings& size : sizes_) total_ += static_cast<int>(size.settings.size());
  }

  // From here on a little better is not of interest. The first look took every better plan it found: the better the
  // plan, the less is left to prove.
  void accept_gap() {
    accepted_gap_ = options_.accepted_gap;
    if (result_.best.empty()) return;
    incumbent_ = std::min(incumbent_, chain::of_interest(best_so_far(), accepted_gap_));
  }

  // Plans that take longer are hardly worth a first look: at so small a share of their peak no fleet is well used.
  [[nodiscard]] std::int64_t likely_time() const {
    const std::int64_t slowest = tuning_.slowest_likely;
    const Nanoseconds least = relax::relaxed_bound(model_, hierarchy_, /*modelled=*/false, options_.profiles);
    return slowest * std::min(least.value(), INT64_MAX / slowest);
  }

  // A first look with one pipeline: its plan spares most questions about the others.
  void first_look_within(std::int64_t time) {
    const auto most = static_cast<std::size_t>(tuning_.first_look_sizes);
    for (std::size_t i = 0; i < std::min(most, sizes_.size()); ++i) {
      const Setting& setting = sizes_[i].settings.front();
      if (setting.replicas > 1) continue;  // only replicas use this size
      Batch batch = batches_.first_look(setting, std::min(time, incumbent_), incumbent_);
      std::vector<Task> ignored;
      solve(batch, first_pass(), ignored);
    }
  }

  void count_queries(const FrontierStore& store) {
    result_.statistics.queries += store.queries();
    result_.statistics.partial_plans += store.partial_plans();
    for (std::size_t i = 0; i < store.tallies().size(); ++i) result_.parallelizers[i].add(store.tallies()[i]);
  }

  // In waves of fixed size: the programs of a wave know the same incumbent, so that nothing depends on which of them
  // ends first, nor on how many threads there are.
  void solve(Batch& batch, std::int64_t budget, std::vector<Task>& unfinished) {
    note(batch);
    if (batch.late) return leave_open(batch.settings, unfinished);
    for (const Setting& setting : batch.cut) note_bound({setting, incumbent_});
    std::vector<CandidateProgram>& open = batch.candidates;
    const auto at_once = static_cast<std::size_t>(tuning_.programs_at_once);
    for (std::size_t from = 0; from < open.size(); from += at_once) {
      const std::size_t to = std::min(open.size(), from + at_once);
      const auto wave = static_cast<std::int64_t>(to - from);
      const Goal goal = goal_now(accepted_gap_, std::min(budget, labels_left() / wave));
      tbb::parallel_for(from, to, [&](std::size_t i) { batches_.solve(open[i], *batch.store, goal); });
      for (std::size_t i = from; i < to; ++i) {
        Task task{open[i].setting};
        take(open[i], batch.store, task);
        add(task, unfinished);
      }
    }
  }

  [[nodiscard]] bool is_late() const { return options_.deadline.has_passed(); }

  [[nodiscard]] std::int64_t labels_left() const {
    return is_late() ? 0 : options_.label_budget - result_.statistics.labels;
  }

  void add(const Task& task, std::vector<Task>& unfinished) {
    if (task.bound < incumbent_) {
      unfinished.push_back(task);
    } else {
      note_bound(task);
    }
  }

  void note_bound(const Task& task) {
    LevelReport& report = result_.levels[static_cast<std::size_t>(task.setting.level)];
    report.bound = std::min(report.bound, Nanoseconds(task.bound));
  }

  void note(const Batch& batch) {
    for (const Setting& setting : batch.settings) report(setting);
    result_.statistics.programs_cut += static_cast<std::int64_t>(batch.cut.size());
    if (batch.some_slice_fits) attempts_.some_slice_fits = true;
    count_queries(*batch.store);
    note_shortage(*batch.store);
  }

  // Notes down what was found, and what is now known of the task.
  void take(CandidateProgram& candidate, const std::shared_ptr<FrontierStore>& store, Task& task) {
    if (candidate.cut) {
      task.bound = std::max(task.bound, candidate.compared_with);
      ++result_.statistics.programs_cut;
      return;
    }
    const chain::ProgramResult& solved = candidate.solved;
    task.bound = std::max(task.bound, solved.bound);
    result_.statistics.frontier_plans += solved.frontier_plans;
    result_.statistics.labels += solved.labels;
    result_.statistics.states += solved.states;
    result_.statistics.cuts += solved.cuts;
    result_.statistics.cuts.slices_by_capacity += candidate.slices_cut;
    ++result_.statistics.programs;
    LevelReport& report = result_.levels[static_cast<std::size_t>(candidate.setting.level)];
    for (const chain::Chain& chain : solved.chains) {
      report.best = std::min(report.best, Nanoseconds(chain.time));
      incumbent_ = std::min(incumbent_, chain::of_interest(chain.time, accepted_gap_));
      result_.best.push_back(batches_.composition_of(candidate, *store, chain));
    }
    keep_best(result_.best, options_.top);
    take_timed(candidate, store);
  }

  void take_timed(CandidateProgram& candidate, const std::shared_ptr<FrontierStore>& store) {
    for (const chain::TimedChain& timed : candidate.solved.timed) {
      result_.timed.push_back({Nanoseconds(timed.time), batches_.composition_of(candidate, *store, timed.chain)});
    }
    keep_fastest(result_.timed, options_.top);
    fastest_.note(std::move(candidate), store);
  }

  // Passes of timetables: a few hundredths of what the search took.
  [[nodiscard]] std::int64_t last_effort() const {
    return tuning_.last_effort + tuning_.effort_of_label * result_.statistics.labels;
  }

  // Changes the fastest plans as long as that helps.
  void improve_fastest() {
    std::vector<PlacedChain> starts = fastest_.take();
    if (starts.empty()) return;
    const std::int64_t before = starts.front().timed.time;
    for (PlacedChain& start : starts) batches_.improve(start, last_effort());
    PlacedChain fastest =
        *std::ranges::min_element(starts, {}, [](const PlacedChain& start) { return start.timed.time; });
    while (take_other_size(fastest)) {
    }
    if (fastest.timed.time < before) add_improved(fastest);
  }

  void add_improved(const PlacedChain& fastest) {
    Composition better = batches_.composition_of(*fastest.candidate, *fastest.store, fastest.timed.chain);
    LevelReport& report = result_.levels[static_cast<std::size_t>(fastest.candidate->setting.level)];
    report.best = std::min(report.best, better.closed_form);
    // None is where the search has finished.
    if (better.closed_form.value() < incumbent_) {
      incumbent_ = chain::of_interest(better.closed_form.value(), accepted_gap_);
      result_.best.push_back(better);
      keep_best(result_.best, options_.top);
    }
    result_.timed.push_back({Nanoseconds(fastest.timed.time), std::move(better)});
    keep_fastest(result_.timed, options_.top);
  }

  // The next smaller or larger microbatch, where that is faster.
  bool take_other_size(PlacedChain& fastest) {
    const Setting& setting = fastest.candidate->setting;
    const std::vector<std::int64_t> sizes =
        microbatch_sizes(model_.job, setting.replicas, splitting_of(hierarchy_, options_));
    const auto own = std::ranges::find(sizes, setting.microbatch);
    if (own == sizes.end()) return false;
    std::vector<std::int64_t> near;
    if (own != sizes.begin()) near.push_back(*(own - 1));
    if (own + 1 != sizes.end()) near.push_back(*(own + 1));
    for (const std::int64_t size : near) {
      PlacedChain other = batches_.with_size(fastest, size, last_effort() / tuning_.other_size_share);
      if (other.store) count_queries(*other.store);
      if (other.timed.time >= fastest.timed.time) continue;
      fastest = std::move(other);
      PlacedChain among_all =
          batches_.among_all_shapes(fastest, fastest.timed.time + fastest.timed.time / tuning_.closed_form_share);
      count_queries(*among_all.store);
      if (among_all.timed.time == kNoTime) return true;
      batches_.improve(among_all, last_effort());
      if (among_all.timed.time < fastest.timed.time) fastest = std::move(among_all);
      return true;
    }
    return false;
  }

  // Programs that ran out of their share are solved again. Where labels are scarce, first as if only much faster plans
  // were of interest: that says at little cost how far the best plan can be from the best of all. Then to the end, if
  // nothing stayed open and no less is left than this took.
  void finish(std::vector<Task> unfinished) {
    bool goes_on = true;
    if (tuning_.wide_gap_first && !has_ample_labels() && !result_.best.empty() && accepted_gap_ < tuning_.wide_gap) {
      const std::int64_t before = labels_left();
      solve_again(unfinished, tuning_.wide_gap);
      const std::int64_t goal = chain::of_interest(best_so_far(), tuning_.wide_gap);
      const bool is_proven = std::ranges::all_of(unfinished, [&](const Task& task) { return task.bound >= goal; });
      goes_on = is_proven && labels_left() >= before - labels_left();
    }
    if (goes_on) solve_again(unfinished, accepted_gap_);
    for (const Task& task : unfinished) {
      note_bound(task);
      open_bound_ = std::min(open_bound_, task.bound);
    }
  }

  // Most promising first. Leaves what is still open.
  void solve_again(std::vector<Task>& tasks, double gap) {
    std::ranges::stable_sort(tasks, {}, &Task::bound);
    std::vector<std::int64_t> shares(tasks.size(), 0);
    solve_in_order(tasks, gap, shares);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Goal goal = goal_now(gap, labels_left());
      if (tasks[i].bound >= goal.incumbent || goal.labels <= shares[i]) continue;
      Batch batch = solve_task(tasks[i], goal);
      take(batch, tasks[i], goal);
      if (tasks[i].bound < goal.incumbent) break;
    }
    std::vector<Task> still_open;
    for (const Task& task : tasks) add(task, still_open);
    tasks = std::move(still_open);
  }

  [[nodiscard]] bool has_ample_labels() const { return options_.label_budget >= tuning_.ample_labels; }

  // More keep all threads busy. Where each is searched to its end, one may need half of the labels.
  [[nodiscard]] std::size_t tasks_at_once() const {
    return static_cast<std::size_t>(has_ample_labels() ? tuning_.unfinished_at_once_if_ample
                                                       : tuning_.unfinished_at_once);
  }

  // Each with a share of the labels that are left, which is noted down.
  void solve_in_order(std::vector<Task>& tasks, double gap, std::vector<std::int64_t>& shares) {
    // What is known once the first n tasks have ended. Behind one that stays open, none can raise the bound of all.
    struct StateAfter {
      Goal goal;
      std::int64_t open = INT64_MAX;  // bound of such a task
    };
    struct SolveRecord {
      std::size_t task = 0;
      Goal goal;
      Batch batch;
    };
    const std::size_t at_once = tasks_at_once();
    const auto goal_of_task = [&] { return goal_now(gap, labels_left() / static_cast<std::int64_t>(at_once)); };
    std::vector<StateAfter> after(tasks.size() + 1);
    after[0].goal = goal_of_task();
    std::size_t next = 0;
    const auto begin = [&]() -> std::optional<SolveRecord> {
      const StateAfter& known = after[next < at_once ? 0 : next + 1 - at_once];
      if (next == tasks.size() || known.goal.labels <= 0) return std::nullopt;
      if (tasks[next].bound >= std::min(known.goal.incumbent, known.open)) return std::nullopt;
      return SolveRecord{next++, known.goal, {}};
    };
    const auto work = [&](SolveRecord& record) { record.batch = solve_task(tasks[record.task], record.goal); };
    const auto end = [&](SolveRecord& record) {
      Task& task = tasks[record.task];
      take(record.batch, task, record.goal);
      shares[record.task] = record.goal.labels;
      StateAfter& now = after[record.task + 1];
      now = {goal_of_task(), after[record.task].open};
      if (task.bound < now.goal.incumbent) now.open = std::min(now.open, task.bound);
    };
    run_in_order<SolveRecord>(at_once, begin, work, end);
  }

  [[nodiscard]] Goal goal_now(double gap, std::int64_t labels) const {
    return {gap == accepted_gap_ ? incumbent_ : chain::of_interest(best_so_far(), gap), gap, labels,
            result_.timed.empty() ? INT64_MAX : result_.timed.front().time.value()};
  }

  [[nodiscard]] std::int64_t best_so_far() const { return result_.best.front().closed_form.value(); }

  [[nodiscard]] Batch solve_task(const Task& task, const Goal& goal) const {
    Batch batch = batches_.prepare({task.setting}, goal.incumbent);
    for (CandidateProgram& candidate : batch.candidates) batches_.solve(candidate, *batch.store, goal);
    return batch;
  }

  void take(Batch& batch, Task& task, const Goal& goal) {
    note(batch);
    if (batch.late) return;
    if (batch.candidates.empty()) task.bound = std::max(task.bound, goal.incumbent);
    for (CandidateProgram& candidate : batch.candidates) take(candidate, batch.store, task);
  }

  void conclude() {
    if (result_.best.empty() && open_bound_ != INT64_MAX) {
      result_.search_bound = std::max(Nanoseconds(open_bound_), result_.relaxed_bound);
      if (options_.deadline.is_missed()) {
        result_.infeasible = out_of_time(options_.deadline);
        return;
      }
      result_.infeasible = {problem(
          ErrorKind::kIncomplete, "budget-spent",
          "no plan found within " + std::to_string(options_.label_budget) + " labels; whether there is one is open",
          "give the search more with --time-budget, or forbid techniques to make the space smaller")};
      return;
    }
    if (result_.best.empty()) {
      attempts_.no_batch = sizes_.empty();
      result_.infeasible = explain_shortage(model_, hierarchy_.levels.front(), attempts_);
      return;
    }
    const Nanoseconds best = result_.best.front().closed_form;
    result_.finished = open_bound_ >= incumbent_;
    // The relaxation may be the better bound where the search did not go on to the end.
    const Nanoseconds searched(std::min(open_bound_, incumbent_));
    result_.search_bound = std::min(best, std::max(searched, result_.relaxed_bound));
    result_.optimal = result_.search_bound == best;
  }

  void note_shortage(const FrontierStore& store) {
    const Bytes shortage = store.shortage();
    if (shortage == Bytes(0)) return;
    if (attempts_.smallest_shortage == Bytes(0) || shortage < attempts_.smallest_shortage) {
      attempts_.smallest_shortage = shortage;
    }
  }

  void report(const Setting& setting) {
    ++done_;
    if (!progress_) return;
    Progress progress;
    progress.done = std::min(done_, total_);
    progress.total = total_;
    progress.phase = "microbatch " + std::to_string(setting.microbatch) + ", " + std::to_string(setting.replicas) +
                     (setting.replicas == 1 ? " pipeline" : " pipelines");
    if (!result_.best.empty()) progress.best = result_.best.front().closed_form;
    progress_(progress);
  }

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  std::span<const parallelizer::Parallelizer* const> parallelizers_;
  const SearchOptions& options_;
  const ProgramTuning& tuning_;
  const ProgressCallback& progress_;
  BatchMaker batches_;
  std::vector<SizeSettings> sizes_;  // in the order of trying
  std::int64_t incumbent_;           // only times below it are of interest
  double accepted_gap_ = 0;
  std::int64_t open_bound_ = INT64_MAX;  // of programs that stayed unfinished
  int done_ = 0;
  int total_ = 0;
  Attempts attempts_;
  FastestChains fastest_;
  SearchResult result_;
};

}  // namespace

std::int64_t usual_label_budget(int gpus, const ProgramTuning& tuning) {
  if (gpus <= tuning.fully_searched_gpus) return tuning.ample_labels;
  return static_cast<std::int64_t>(static_cast<double>(tuning.ample_labels) * tuning.budget_beyond);
}

SearchResult search(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                    std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
                    const ProgressCallback& progress) {
  return Searcher(model, hierarchy, parallelizers, options, progress).run();
}

}  // namespace tangram::compose
