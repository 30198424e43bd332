#include "target_cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "colocated_search.hpp"
#include "ordered_pipeline.hpp"
#include "search_slices.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/relax/relaxed_bound.hpp"
#include "tangram/relax/state_memory.hpp"

namespace tangram::compose {

namespace {

using cost::RecomputeMode;
using runtime::Rule;
using runtime::Runtime;
using runtime::Schedule;

// ---- cases that the options want ----

using Types = std::set<std::string>;

int most_chunks(const Constraints& constraints) { return std::ranges::max(constraints.chunks); }

bool is_interleaved(const Constraints& constraints) { return most_chunks(constraints) > 1; }

bool is_near(const std::optional<cost::Degrees>& degrees, const std::vector<cost::Degrees>& wanted) {
  return wanted.empty() || !degrees || std::ranges::any_of(wanted, [&](const cost::Degrees& other) {
           return other.tp == degrees->tp && other.gpus() == degrees->gpus();
         });
}

/// Leaves of the types of a case those that are wanted; none named: all. False: there are none.
bool keep_wanted(const Types& wanted, std::vector<std::string>& of_case) {
  if (wanted.empty()) return true;
  if (of_case.empty()) of_case.assign(wanted.begin(), wanted.end());
  std::erase_if(of_case, [&](const std::string& type) { return !wanted.contains(type); });
  return !of_case.empty();
}

bool has_schedule(const Constraints& constraints, std::optional<Schedule> wanted) {
  return !wanted || is_interleaved(constraints) == (*wanted == Schedule::kInterleaved);
}

/// Of no runtime in particular interleaved chunks are searched only where they are asked for: it takes many times as
/// long.
std::optional<Schedule> schedule_of(Target target, const SearchOptions& options) {
  if (options.schedule || target != Target::kGeneric) return options.schedule;
  return Schedule::k1F1B;
}

std::vector<Constraints> wanted_cases(std::vector<Constraints> cases, const SearchOptions& options,
                                      std::optional<Schedule> schedule) {
  const Types types(options.constraints.gpu_types.begin(), options.constraints.gpu_types.end());
  std::erase_if(cases, [&](Constraints& constraints) {
    return !keep_wanted(types, constraints.gpu_types) || !is_near(constraints.demands.degrees, options.near_degrees) ||
           !has_schedule(constraints, schedule);
  });
  for (Constraints& constraints : cases) constraints.put_off = schedule == Schedule::kZeroBubble;
  return cases;
}

// ---- what cases know of those before them ----

/// What plans of the next case must be faster than. The cases without chunks come first, and their best by closed form
/// cuts those that follow. Closed forms of interleaved plans may be above what these take where those of plain ones are
/// not: the best plain one cuts them by what it takes pass by pass, and as far above that as timetables are looked at.
class CutOffs {
 public:
  explicit CutOffs(const SearchOptions& options)
      : given_(options.incumbent), accepted_gap_(options.accepted_gap), reach_(options.tuning.solver.timetable_reach) {}

  void note(const SearchResult& found, bool interleaved) {
    if (!found.best.empty()) {
      Nanoseconds& best = interleaved ? interleaved_ : plain_;
      best = std::min(best, of_interest(found.best.front().closed_form));
    }
    if (!found.timed.empty()) fastest_ = std::min(fastest_, found.timed.front().time);
  }

  /// By closed form. Without labels no other schedule is looked at any further.
  [[nodiscard]] Nanoseconds next(bool interleaved, bool has_labels) const {
    const Nanoseconds best = std::min(plain_, interleaved_);
    if (!interleaved || !has_labels || fastest_ == Nanoseconds::max()) return std::min(given_, best);
    const Nanoseconds near(static_cast<std::int64_t>((1 + reach_) * fastest_.as_double()));
    return std::min({given_, interleaved_, std::max(best, near)});
  }

 private:
  [[nodiscard]] Nanoseconds of_interest(Nanoseconds time) const {
    return Nanoseconds(chain::of_interest(time.value(), accepted_gap_));
  }

  Nanoseconds given_;
  double accepted_gap_;
  double reach_;
  Nanoseconds plain_ = Nanoseconds::max();
  Nanoseconds interleaved_ = Nanoseconds::max();
  Nanoseconds fastest_ = Nanoseconds::max();  // pass by pass
};

/// What screening leaves nothing of, by case but for its schedule. Thread-safe.
class ScreenedCases {
 public:
  ScreenedSizes& of(const Constraints& constraints) {
    const parallelizer::Demands& demands = constraints.demands;
    const std::scoped_lock lock(mutex_);
    return sizes_[{constraints.gpu_types, constraints.max_replicas, constraints.expert_parallel, constraints.pipeline,
                   demands.degrees, demands.recompute, demands.tp_at_ends}];
  }

 private:
  using Case = std::tuple<std::vector<std::string>, int, bool, bool, std::optional<cost::Degrees>,
                          std::optional<RecomputeMode>, int>;
  std::mutex mutex_;
  std::map<Case, ScreenedSizes> sizes_;
};

/// What a case says of the plans it did not find.
struct CaseBound {
  Nanoseconds of_all = Nanoseconds(0);
  std::vector<Nanoseconds> of_levels;
};

/// Without a plan of its own a case is either through, and has none that is better than the incumbent, or out of
/// budget.
CaseBound bound_of(const SearchResult& found) {
  CaseBound bound;
  const bool is_through = found.best.empty() && !found.is_out_of_budget();
  bound.of_all = is_through ? Nanoseconds::max() : found.search_bound;
  for (const LevelReport& level : found.levels) bound.of_levels.push_back(level.bound);
  return bound;
}

/// Where a case was searched again.
void raise(const CaseBound& again, CaseBound& bound) {
  bound.of_all = std::max(bound.of_all, again.of_all);
  for (std::size_t i = 0; i < bound.of_levels.size(); ++i) {
    bound.of_levels[i] = std::max(bound.of_levels[i], again.of_levels[i]);
  }
}

// ---- the search ----

class CaseSearch {
 public:
  /// Cases of a model without what the runtime does not have; all must outlive it.
  CaseSearch(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
             std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
             const ProgressCallback& progress)
      : model_(model),
        hierarchy_(hierarchy),
        parallelizers_(parallelizers),
        options_(options),
        progress_(in_turn(progress)),
        signatures_(signatures_of(model, options)),
        known_{CutOffs(options), options.label_budget} {}

  /// Of one case at least.
  SearchResult run(const std::vector<Constraints>& cases) {
    Nanoseconds relaxed{};
    tbb::task_group beside;
    beside.run([&] { relaxed = options_.relaxed_bound ? *options_.relaxed_bound : without_search(cases); });
    // Those of several chunks know what was screened of all the others.
    const auto chunked = std::ranges::find_if(cases, is_interleaved);
    search_in_order({cases.begin(), chunked});
    search_in_order({chunked, cases.end()});
    beside.wait();
    conclude(relaxed);
    return std::move(all_);
  }

 private:
  /// What a case is given of those before it.
  struct Known {
    CutOffs cut_offs;
    std::int64_t labels_left = 0;
    bool has_plan = false;
  };
  struct CaseRecord {
    std::size_t number = 0;
    Known known;
    SearchResult found;
  };

  /// From one thread at a time.
  static ProgressCallback in_turn(const ProgressCallback& progress) {
    if (!progress) return {};
    return [&progress, mutex = std::make_shared<std::mutex>()](const Progress& now) {
      const std::scoped_lock lock(*mutex);
      progress(now);
    };
  }

  /// The first ones alone, until there is a plan: it spares others much of their work.
  void search_in_order(std::span<const Constraints> cases) {
    std::vector<CaseBound> bounds;
    while (bounds.size() < cases.size() && !known_.has_plan && !is_late()) {
      const Constraints& next = cases[bounds.size()];
      bounds.push_back(take(search(next, known_), next));
    }
    search_beside(cases.subspan(bounds.size()), bounds);
    search_again(cases, bounds);
    for (const CaseBound& bound : bounds) lower_to(bound);
    if (bounds.size() < cases.size()) leave_open();
  }

  void search_beside(std::span<const Constraints> cases, std::vector<CaseBound>& bounds) {
    const auto at_once = static_cast<std::size_t>(options_.tuning.programs.cases_at_once);
    StatesInOrder<Known> states(cases.size(), at_once, known_);
    std::size_t next = 0;
    const auto begin = [&]() -> std::optional<CaseRecord> {
      if (next == cases.size() || is_late()) return std::nullopt;
      Known known = states.known_to(next);
      known.labels_left /= static_cast<std::int64_t>(std::min(at_once, cases.size()));
      return CaseRecord{next++, known, {}};
    };
    const auto work = [&](CaseRecord& record) { record.found = search(cases[record.number], record.known); };
    const auto end = [&](CaseRecord& record) {
      bounds.push_back(take(std::move(record.found), cases[record.number]));
      states.after(record.number + 1) = known_;
    };
    run_in_order<CaseRecord>(at_once, begin, work, end);
  }

  /// Those whose share of the labels was too small, with equal parts of what is left.
  void search_again(std::span<const Constraints> cases, std::vector<CaseBound>& bounds) {
    const auto is_open = [&](std::size_t i) {
      return bounds[i].of_all < known_.cut_offs.next(is_interleaved(cases[i]), /*has_labels=*/true);
    };
    std::int64_t open = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) open += is_open(i) ? 1 : 0;
    for (std::size_t i = 0; i < bounds.size() && open > 0; ++i) {
      Known known = known_;
      known.labels_left /= open;
      if (known.labels_left == 0 || is_late()) return;
      if (!is_open(i)) continue;
      raise(take(search(cases[i], known), cases[i]), bounds[i]);
      --open;
    }
  }

  /// One case is searched however late it is.
  [[nodiscard]] bool is_late() const { return !is_first_ && options_.deadline.has_passed(); }

  [[nodiscard]] model::Model model_of(bool expert_parallel, bool pipeline) const {
    model::Model model = model_;
    model.job.allow.ep = model.job.allow.ep && expert_parallel;
    model.job.allow.pipeline = model.job.allow.pipeline && pipeline;
    return model;
  }

  /// A bound on the plans of all cases together.
  [[nodiscard]] Nanoseconds without_search(const std::vector<Constraints>& cases) const {
    const model::Model model = model_of(std::ranges::any_of(cases, &Constraints::expert_parallel),
                                        std::ranges::any_of(cases, &Constraints::pipeline));
    int chunks = 1;
    for (const Constraints& constraints : cases) chunks = std::max(chunks, most_chunks(constraints));
    return relax::relaxed_bound(model, hierarchy_, are_modelled(parallelizers_), options_.profiles,
                                options_.tuning.bound, chunks, options_.deadline, cases.front().put_off);
  }

  [[nodiscard]] SearchResult search(const Constraints& constraints, const Known& known) {
    SearchOptions options = options_;
    options.constraints = constraints;
    options.label_budget = std::max<std::int64_t>(1, known.labels_left);
    options.incumbent = known.cut_offs.next(is_interleaved(constraints), known.labels_left > 0);
    options.relaxed_bound = Nanoseconds(0);  // that of all cases counts
    if (constraints.max_replicas > 0) options.max_replicas = std::min(options.max_replicas, constraints.max_replicas);
    return search_slices(model_of(constraints.expert_parallel, constraints.pipeline), hierarchy_, parallelizers_,
                         options, signatures_, screened_.of(constraints), progress_);
  }

  CaseBound take(SearchResult found, const Constraints& constraints) {
    CaseBound bound = bound_of(found);
    known_.cut_offs.note(found, is_interleaved(constraints));
    known_.labels_left = std::max<std::int64_t>(0, known_.labels_left - found.statistics.labels);
    known_.has_plan = known_.has_plan || !found.best.empty();
    const Bytes usable = relax::usable_memory(hierarchy_.levels.front(), constraints.gpu_types);
    if (is_first_ || usable > most_usable_) {
      all_.infeasible = found.infeasible;
      most_usable_ = usable;
    }
    if (is_first_) {
      all_.space = found.space;
      all_.levels = found.levels;
      is_first_ = false;
    }
    merge(std::move(found));
    return bound;
  }

  void merge(SearchResult found) {
    std::ranges::move(found.best, std::back_inserter(all_.best));
    keep_best(all_.best, options_.top);
    std::ranges::move(found.timed, std::back_inserter(all_.timed));
    keep_fastest(all_.timed, options_.top);
    all_.add_effort_of(found);
    for (std::size_t i = 0; i < all_.levels.size(); ++i) {
      all_.levels[i].best = std::min(all_.levels[i].best, found.levels[i].best);
    }
  }

  void lower_to(const CaseBound& bound) {
    open_ = std::min(open_, bound.of_all);
    for (std::size_t i = 0; i < all_.levels.size(); ++i) {
      all_.levels[i].bound = std::min(all_.levels[i].bound, bound.of_levels[i]);
    }
  }

  /// Nothing is known of the cases that are left.
  void leave_open() {
    open_ = Nanoseconds(0);
    for (LevelReport& level : all_.levels) level.bound = Nanoseconds(0);
    if (all_.best.empty()) all_.infeasible = out_of_time(options_.deadline);
  }

  void conclude(Nanoseconds relaxed) {
    all_.relaxed_bound = relaxed;
    if (all_.best.empty()) return;
    const Nanoseconds best = all_.best.front().closed_form;
    const Nanoseconds wanted(chain::of_interest(best.value(), options_.accepted_gap));
    const Nanoseconds proven = std::max(open_, relaxed);
    all_.finished = proven >= wanted;
    all_.search_bound = std::min(best, std::max(std::min(open_, wanted), relaxed));
    all_.optimal = all_.search_bound == best;
  }

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  std::span<const parallelizer::Parallelizer* const> parallelizers_;
  const SearchOptions& options_;
  const ProgressCallback progress_;
  const SignatureTable signatures_;
  Known known_;
  ScreenedCases screened_;
  SearchResult all_;
  bool is_first_ = true;
  Bytes most_usable_;                      // of the cases so far: what the roomiest of them lacks is what is missing
  Nanoseconds open_ = Nanoseconds::max();  // what the cases leave open
};

// ---- what is said of it ----

/// Where a schedule is wanted that the job's techniques leave out.
Diagnostics nothing_to_search() {
  return {problem(ErrorKind::kInfeasible, "schedule-forbidden",
                  "the wanted schedule, or the wanted GPU types and degrees, are not among what the job allows",
                  "allow the techniques interleaving and pipeline, or take --schedule any")};
}

/// Whether hosts have GPU types beside the one that the runtime uses of them.
bool leaves_types_idle(const Runtime& runtime, const model::Model& model, const cluster::IslandHierarchy& hierarchy) {
  return runtime.has(Rule::kOneTypeAHost) && bears_on(Rule::kOneTypeAHost, model, hierarchy);
}

void explain_idle_types(const Runtime& runtime, Diagnostics& infeasible) {
  for (Diagnostic& d : infeasible) {
    d.hint = fmt::format(
        "{} uses one GPU type of a host, and hosts of this fleet have several: --target megatron uses all of them; or "
        "{}",
        runtime.title, d.hint);
  }
}

std::string placement_rule(EncoderPlacement placement) {
  return placement == EncoderPlacement::kHomogeneous
             ? "placement homogeneous: one set of degrees for all stages, the first has all encoders"
             : "placement disjoint: each encoder is one stage, without other blocks";
}

std::string chunk_rule(const std::vector<int>& chunks) {
  return fmt::format("interleaved: {} model chunks a stage, blocks that are unlike the rest in the first or last chunk",
                     fmt::join(chunks, ", "));
}

void add_rules(const Runtime& runtime, const SearchOptions& options, const std::vector<Constraints>& cases,
               std::vector<std::string>& rules) {
  if (runtime.target != Target::kGeneric) rules.emplace_back(runtime.in_words);
  if (options.lifted) rules.push_back(fmt::format("without the rule: {}", in_words(*options.lifted)));
  if (options.placement != EncoderPlacement::kAny) rules.push_back(placement_rule(options.placement));
  const auto interleaved = std::ranges::find_if(cases, is_interleaved);
  if (interleaved != cases.end()) rules.push_back(chunk_rule(interleaved->chunks));
  if (options.schedule) rules.push_back(fmt::format("schedule: {}", to_string(*options.schedule)));
}

}  // namespace

SearchResult search_cases(Target target, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                          std::span<const parallelizer::Parallelizer* const> parallelizers,
                          const SearchOptions& options, const ProgressCallback& progress) {
  const std::optional<Schedule> schedule = schedule_of(target, options);
  if (target == Target::kGeneric && options.placement == EncoderPlacement::kAny && schedule == Schedule::k1F1B) {
    return search(model, hierarchy, parallelizers, options, progress);
  }
  if (options.placement == EncoderPlacement::kColocated) {
    return search_colocated(model, hierarchy, parallelizers, options, progress);
  }
  const Runtime& row = runtime::runtime_of(target);
  const Runtime runtime = options.lifted ? row.without(*options.lifted) : row;
  model::Model restricted = model;
  restrict_to(runtime, restricted);
  if (options.placement == EncoderPlacement::kHomogeneous) restricted.job.allow.mixed_stages = false;
  const auto cases = wanted_cases(cases_of(runtime, restricted, hierarchy, options.placement), options, schedule);
  SearchResult found;
  if (cases.empty()) {
    found.infeasible = nothing_to_search();
  } else {
    found = CaseSearch(restricted, hierarchy, parallelizers, options, progress).run(cases);
  }
  add_rules(runtime, options, cases, found.space.rules);
  if (found.best.empty() && leaves_types_idle(runtime, restricted, hierarchy)) {
    explain_idle_types(runtime, found.infeasible);
  }
  return found;
}

}  // namespace tangram::compose
