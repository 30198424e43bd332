#include "tangram/compose/search.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "near_best.hpp"
#include "pricing.hpp"
#include "radices.hpp"
#include "reduction.hpp"
#include "relaxed_bound.hpp"
#include "shortage.hpp"
#include "space.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/compose/program.hpp"
#include "turns.hpp"

namespace tangram::compose {

namespace {

constexpr int kScoutShapes = 3;                // of each class, in the first look
constexpr std::size_t kScoutSizes = 3;         // microbatch sizes of the first look
constexpr double kUsualMicrobatches = 64;      // sizes that give about so many are tried first
constexpr std::size_t kWave = 4;               // programs solved at once, each unaware of the others
constexpr std::size_t kSizesAtOnce = 2;        // microbatch sizes, one of them being solved
constexpr std::int64_t kFirstPass = 6'250;     // labels that one program may use before all were tried
constexpr std::int64_t kFirstPassShare = 120;  // and no more than this share of the budget
constexpr std::int64_t kAmple = 2'000'000;     // labels that fleets of some hundred GPUs are searched to the end with
constexpr double kFirstGap = 0.025;            // proven of all programs first where there are fewer

// Pairs of shapes offered to mixed stages. They multiply the queries, and matter less the more stages there are.
std::size_t most_mixed_pairs(int gpus) {
  if (gpus <= 32) return 24;
  if (gpus <= 128) return 12;
  return 4;
}

std::vector<int> all_lengths(int blocks) {
  std::vector<int> lengths(static_cast<std::size_t>(blocks));
  std::iota(lengths.begin(), lengths.end(), 1);
  return lengths;
}

// Enough to say how fast the others can be at most, see FrontierStore.
std::vector<int> few_lengths(int blocks) {
  std::vector<int> lengths;
  for (int length = 1; length <= blocks; length += length < 4 ? 1 : length) lengths.push_back(length);
  return lengths;
}

// A program whose best plan may be of interest.
struct Task {
  Setting setting;
  std::int64_t bound = 0;  // none of its plans is faster
};

// What is wanted of a program: a plan that is faster, or the proof that it has none, within so many labels.
struct Goal {
  std::int64_t incumbent = 0;
  double accepted_gap = 0;
  std::int64_t labels = 0;
  std::int64_t timed_incumbent = INT64_MAX;
};

// One program on its way from a setting to its solution.
struct Attempt {
  Setting setting;
  std::vector<ClassShare> shares;
  std::vector<std::vector<OptionPart>> options;
  PricedProgram priced;
  ProgramResult solved;
  std::int64_t judged_at = INT64_MAX;  // incumbent that its relaxation was compared with
  bool cut = false;
  std::int64_t slices_cut = 0;
};

// Programs of one microbatch size on their way: they share what the parallelizers say.
struct Batch {
  std::vector<Setting> settings;
  std::unique_ptr<FrontierStore> store;
  std::vector<Attempt> attempts;  // whose relaxation is better than the incumbent
  std::vector<Setting> cut;       // the others
  bool some_slice_fits = false;
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
        progress_(progress),
        signatures_(model),
        incumbent_(options.incumbent.value()) {}

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
    if (most <= kMostClasses) return false;
    result_.infeasible = {problem(ErrorKind::kInput, "too-many-classes",
                                  "the fleet has " + std::to_string(most) + " kinds of islands, at most " +
                                      std::to_string(kMostClasses) + " can be told apart",
                                  "let GPUs that differ little count as alike with a larger --tolerance")};
    return true;
  }

  void search_programs() {
    const std::int64_t likely = likely_time();
    scout_within(likely);
    if (result_.best.empty() && likely < incumbent_) scout_within(incumbent_);
    accept_gap();
    std::vector<std::vector<Setting>> sizes;
    for (const std::int64_t b : sizes_) {
      if (auto settings = settings_of(b); !settings.empty()) sizes.push_back(std::move(settings));
    }
    std::vector<Task> unfinished;
    solve_sizes(sizes, unfinished);
    finish(std::move(unfinished));
  }

  // While one size is solved the next ones are prepared, by what is known before them all.
  void solve_sizes(const std::vector<std::vector<Setting>>& sizes, std::vector<Task>& unfinished) {
    struct Turn {
      std::size_t size = 0;
      std::int64_t incumbent = 0;
      Batch batch;
    };
    std::vector<std::int64_t> after(sizes.size() + 1, incumbent_);  // [n] once the first n sizes are solved
    std::size_t next = 0;
    const auto begin = [&]() -> std::optional<Turn> {
      if (next == sizes.size()) return std::nullopt;
      const std::int64_t incumbent = after[next < kSizesAtOnce ? 0 : next + 1 - kSizesAtOnce];
      return Turn{next++, incumbent, {}};
    };
    const auto work = [&](Turn& turn) { turn.batch = prepare(sizes[turn.size], turn.incumbent); };
    const auto end = [&](Turn& turn) {
      solve(turn.batch, first_pass(), unfinished);
      after[turn.size + 1] = incumbent_;
    };
    take_turns<Turn>(kSizesAtOnce, begin, work, end);
  }

  [[nodiscard]] Nanoseconds without_search() const {
    return relaxed_bound(model_, hierarchy_, is_modelled(), options_.profiles);
  }

  [[nodiscard]] bool is_modelled() const {
    return std::ranges::all_of(parallelizers_, [](const parallelizer::Parallelizer* p) { return p->info().modelled; });
  }

  [[nodiscard]] StoreLimits store_limits(std::int64_t microbatches) const {
    return {most_in_flight(microbatches), model_.job.allow, options_.constraints.demands, options_.profiles};
  }

  [[nodiscard]] std::int64_t first_pass() const {
    return std::clamp<std::int64_t>(options_.label_budget / kFirstPassShare, 1, kFirstPass);
  }

  void list_space() {
    Space& space = result_.space;
    int gpus = 0;
    for (const cluster::IslandClass& c : hierarchy_.levels.front().classes) gpus += c.gpu_count();
    pairs_ = most_mixed_pairs(gpus);
    if (model_.job.allow.mixed_stages && options_.max_parts > 1) {
      space.rules.push_back("mixed stages: two classes, the " + std::to_string(pairs_) +
                            " largest pairs of shapes, samples in eighths");
    }
    for (const cluster::IslandLevel& level : hierarchy_.levels) {
      space.levels.push_back(level.name);
      int islands = 0;
      for (const cluster::IslandClass& c : level.classes) islands += static_cast<int>(c.islands.size());
      result_.levels.push_back({level.name, static_cast<int>(level.classes.size()), islands});
      for (const int r : replica_counts(model_.job, level, options_.max_replicas)) {
        if (std::find(space.replicas.begin(), space.replicas.end(), r) == space.replicas.end())
          space.replicas.push_back(r);
      }
      for (const cluster::IslandClass& c : level.classes) space.shapes.emplace_back(c.alias, shapes_of(c));
    }
    std::sort(space.replicas.begin(), space.replicas.end());
    for (const int r : space.replicas) {
      for (const std::int64_t b : microbatch_sizes(model_.job, r)) {
        if (std::find(sizes_.begin(), sizes_.end(), b) == sizes_.end()) sizes_.push_back(b);
      }
    }
    std::sort(sizes_.begin(), sizes_.end());
    space.microbatches = sizes_;
    for (const std::int64_t b : sizes_) total_ += static_cast<int>(settings_of(b).size());
    // Likely sizes first: an early incumbent spares the others.
    const auto oddity = [&](std::int64_t b) {
      return std::abs(
          std::log2(static_cast<double>(model_.job.global_batch) / static_cast<double>(b) / kUsualMicrobatches));
    };
    std::stable_sort(sizes_.begin(), sizes_.end(),
                     [&](std::int64_t a, std::int64_t b) { return oddity(a) < oddity(b); });
  }

  [[nodiscard]] std::vector<Setting> settings_of(std::int64_t b) const {
    std::vector<Setting> settings;
    for (std::size_t level = 0; level < hierarchy_.levels.size(); ++level) {
      for (const int r : replica_counts(model_.job, hierarchy_.levels[level], options_.max_replicas)) {
        const std::vector<std::int64_t> sizes = microbatch_sizes(model_.job, r);
        if (std::find(sizes.begin(), sizes.end(), b) == sizes.end()) continue;
        settings.push_back({static_cast<int>(level), r, b, model_.job.global_batch / r / b});
      }
    }
    return settings;
  }

  // From here on a little better is not of interest. The first look took every better plan it found: the better the
  // plan, the less is left to prove.
  void accept_gap() {
    accepted_gap_ = options_.accepted_gap;
    if (result_.best.empty()) return;
    incumbent_ = std::min(incumbent_, of_interest(best_so_far(), accepted_gap_));
  }

  // Classes of GPU types that the constraints leave out have no shapes.
  [[nodiscard]] std::vector<ClassShare> shares_of(const cluster::IslandLevel& level, int replicas) const {
    std::vector<ClassShare> shares = share_classes(level, replicas);
    const std::vector<std::string>& types = options_.constraints.gpu_types;
    for (std::size_t k = 0; k < shares.size() && !types.empty(); ++k) {
      if (std::ranges::find(types, level.classes[k].device.name) == types.end()) shares[k] = {};
    }
    return shares;
  }

  // Plans that take longer are hardly worth a first look: at so small a share of their peak no fleet is well used.
  [[nodiscard]] std::int64_t likely_time() const {
    constexpr std::int64_t kSlowest = 8;
    const Nanoseconds least = relaxed_bound(model_, hierarchy_, /*modelled=*/false, options_.profiles);
    return kSlowest * std::min(least.value(), INT64_MAX / kSlowest);
  }

  void scout_within(std::int64_t time) {
    for (std::size_t i = 0; i < std::min(kScoutSizes, sizes_.size()); ++i) scout(sizes_[i], std::min(time, incumbent_));
  }

  // A first look with one pipeline on the largest shapes: its plan spares most questions about the others.
  void scout(std::int64_t b, std::int64_t time) {
    const std::vector<std::int64_t> sizes = microbatch_sizes(model_.job, 1);
    if (std::find(sizes.begin(), sizes.end(), b) == sizes.end()) return;  // only replicas use this size
    const Setting setting{0, 1, b, model_.job.global_batch / b};
    const cluster::IslandLevel& level = hierarchy_.levels.front();
    std::vector<ClassShare> shares = shares_of(level, 1);
    for (ClassShare& share : shares) {
      const auto excess = static_cast<std::ptrdiff_t>(share.shapes.size()) - kScoutShapes;
      if (excess > 0) share.shapes.erase(share.shapes.begin(), share.shapes.begin() + excess);
    }
    Batch batch;
    batch.settings = {setting};
    batch.store = make_store(setting.microbatches);
    auto options = single_options(level, shares, b, slowest_of_interest(setting, time), *batch.store);
    if (!options.empty()) batch.attempts.push_back({setting, std::move(shares), std::move(options), {}, {}});
    batch.store->ask(entries_of(batch.attempts), all_lengths(model_.block_count()));
    outline(batch, incumbent_);
    std::vector<Task> ignored;
    solve(batch, first_pass(), ignored);
  }

  [[nodiscard]] std::unique_ptr<FrontierStore> make_store(std::int64_t microbatches) const {
    return std::make_unique<FrontierStore>(model_, signatures_, parallelizers_, store_limits(microbatches));
  }

  [[nodiscard]] std::int64_t most_in_flight(std::int64_t microbatches) const {
    return std::min<std::int64_t>(microbatches, std::int64_t{2} * model_.block_count());
  }

  void count_queries(const FrontierStore& store) {
    result_.statistics.queries += store.queries();
    result_.statistics.partial_plans += store.partial_plans();
    for (std::size_t i = 0; i < store.tallies().size(); ++i) result_.parallelizers[i].add(store.tallies()[i]);
  }

  // Asks for all that the programs of one size need, and outlines them. Those are cut first that can not be of interest
  // however fast the slices are that were not asked for.
  [[nodiscard]] Batch prepare(const std::vector<Setting>& settings, std::int64_t incumbent) const {
    std::int64_t most = 1;
    for (const Setting& setting : settings) most = std::max(most, setting.microbatches);
    Batch batch;
    batch.settings = settings;
    batch.store = make_store(most);
    FrontierStore& store = *batch.store;
    batch.attempts = attempts_at(settings, incumbent, store);
    const std::vector<int> lengths = all_lengths(model_.block_count());
    const std::vector<int> first = may_drop(incumbent) ? few_lengths(model_.block_count()) : lengths;
    store.ask(entries_of(batch.attempts), first);
    if (model_.job.allow.mixed_stages && options_.max_parts > 1) add_mixed(first, incumbent, batch);
    if (may_drop(incumbent)) {
      outline(batch, incumbent);
      store.ask(entries_of(batch.attempts), lengths, wanted_by(batch.attempts, store));
    } else {
      store.ask(entries_of(batch.attempts), lengths);
    }
    outline(batch, incumbent);
    return batch;
  }

  // [entry][signature] whether a program has an outline of it.
  [[nodiscard]] static std::vector<std::vector<char>> wanted_by(const std::vector<Attempt>& attempts,
                                                                const FrontierStore& store) {
    std::vector<std::vector<char>> wanted(store.size());
    for (const Attempt& attempt : attempts) {
      const Program& program = attempt.priced.program;
      for (std::size_t option = 0; option < attempt.options.size(); ++option) {
        for (const OptionPart& part : attempt.options[option]) {
          std::vector<char>& own = wanted[static_cast<std::size_t>(part.entry)];
          own.resize(static_cast<std::size_t>(program.signatures), 0);
          for (int signature = 0; signature < program.signatures; ++signature) {
            if (!program.frontier(static_cast<int>(option), signature).empty())
              own[static_cast<std::size_t>(signature)] = 1;
          }
        }
      }
    }
    return wanted;
  }

  // Timetables are looked at of plans a little slower by closed form than any of interest.
  [[nodiscard]] std::int64_t within_reach(std::int64_t incumbent) const {
    if (incumbent == INT64_MAX || !options_.timed) return incumbent;
    return incumbent + static_cast<std::int64_t>(kReach * static_cast<double>(incumbent));
  }

  [[nodiscard]] bool may_drop(std::int64_t incumbent) const {
    return incumbent != INT64_MAX && is_modelled() && parallelizer::are_inherited(options_.constraints.demands);
  }

  // Those with shapes to run on.
  [[nodiscard]] std::vector<Attempt> attempts_at(const std::vector<Setting>& settings, std::int64_t incumbent,
                                                 FrontierStore& store) const {
    std::vector<Attempt> attempts;
    for (const Setting& setting : settings) {
      const cluster::IslandLevel& level = level_of(setting);
      std::vector<ClassShare> shares = shares_of(level, setting.replicas);
      auto options = single_options(level, shares, setting.microbatch, slowest_of_interest(setting, incumbent), store);
      if (!options.empty()) attempts.push_back({setting, std::move(shares), std::move(options), {}, {}});
    }
    return attempts;
  }

  void add_mixed(std::span<const int> lengths, std::int64_t incumbent, Batch& batch) const {
    std::vector<int> entries;
    for (Attempt& attempt : batch.attempts) {
      const Setting& setting = attempt.setting;
      const std::int64_t slowest = slowest_of_interest(setting, incumbent);
      const auto mixed =
          mixed_options(level_of(setting), attempt.options, setting.microbatch, slowest, *batch.store, pairs_);
      add_entries(mixed, entries);
      attempt.options.insert(attempt.options.end(), mixed.begin(), mixed.end());
    }
    batch.store->ask(distinct(std::move(entries)), lengths);
  }

  // A stage of time T makes an iteration of at least M T.
  [[nodiscard]] static std::int64_t slowest_of_interest(const Setting& setting, std::int64_t incumbent) {
    return incumbent / setting.microbatches;
  }

  static void add_entries(const std::vector<std::vector<OptionPart>>& options, std::vector<int>& entries) {
    for (const auto& parts : options) {
      for (const OptionPart& part : parts) entries.push_back(part.entry);
    }
  }

  [[nodiscard]] static std::vector<int> distinct(std::vector<int> entries) {
    std::ranges::sort(entries);
    const auto rest = std::ranges::unique(entries);
    entries.erase(rest.begin(), rest.end());
    return entries;
  }

  [[nodiscard]] static std::vector<int> entries_of(const std::vector<Attempt>& attempts) {
    std::vector<int> entries;
    for (const Attempt& attempt : attempts) add_entries(attempt.options, entries);
    return distinct(std::move(entries));
  }

  // In waves of fixed size: the programs of a wave know the same incumbent, so that nothing depends on which of them
  // ends first, nor on how many threads there are.
  void solve(Batch& batch, std::int64_t budget, std::vector<Task>& unfinished) {
    note(batch);
    for (const Setting& setting : batch.cut) note_bound({setting, incumbent_});
    std::vector<Attempt>& open = batch.attempts;
    for (std::size_t from = 0; from < open.size(); from += kWave) {
      const std::size_t to = std::min(open.size(), from + kWave);
      const auto wave = static_cast<std::int64_t>(to - from);
      const Goal goal = goal_now(accepted_gap_, std::min(budget, labels_left() / wave));
      tbb::parallel_for(from, to, [&](std::size_t i) { solve_attempt(open[i], *batch.store, goal); });
      for (std::size_t i = from; i < to; ++i) {
        Task task{open[i].setting};
        take(open[i], *batch.store, task);
        add(task, unfinished);
      }
    }
  }

  [[nodiscard]] std::int64_t labels_left() const { return options_.label_budget - result_.statistics.labels; }

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

  // Leaves those whose relaxation is better than the incumbent, without what none of their plans within reach can use.
  void outline(Batch& batch, std::int64_t incumbent) const {
    std::vector<Attempt>& attempts = batch.attempts;
    tbb::parallel_for(std::size_t{0}, attempts.size(), [&](std::size_t i) {
      Attempt& attempt = attempts[i];
      attempt.priced = outline_program(model_, level_of(attempt.setting), attempt.shares, attempt.setting,
                                       attempt.options, signatures_, *batch.store);
      attempt.priced.program.classic_warmup = options_.constraints.classic_warmup;
      limit_spend(attempt);
      judge(attempt, incumbent);
    });
    for (const Attempt& attempt : attempts) {
      for (const auto& frontier : attempt.priced.program.frontiers) {
        if (!frontier.empty()) batch.some_slice_fits = true;
      }
      if (attempt.cut) batch.cut.push_back(attempt.setting);
    }
    std::erase_if(attempts, [](const Attempt& attempt) { return attempt.cut; });
    const std::int64_t interest = within_reach(incumbent);
    tbb::parallel_for(std::size_t{0}, attempts.size(),
                      [&](std::size_t i) { attempts[i].slices_cut += reduce(attempts[i].priced.program, interest); });
  }

  static void judge(Attempt& attempt, std::int64_t incumbent) {
    attempt.judged_at = incumbent;
    attempt.cut = root_bound(attempt.priced.program, incumbent) >= incumbent;
  }

  // Every pipeline may spend an equal share.
  void limit_spend(Attempt& attempt) const {
    if (!options_.spend) return;
    Program& program = attempt.priced.program;
    const std::vector<cluster::IslandClass>& classes = level_of(attempt.setting).classes;
    for (std::size_t k = 0; k < classes.size(); ++k) {
      const bool counts_gpus = options_.spend->currency == Currency::kGpus;
      program.unit_spend.push_back(attempt.shares[k].unit * (counts_gpus ? 1 : price_of(classes[k]).value()));
    }
    program.most_spend = options_.spend->most / attempt.setting.replicas;
  }

  void solve_attempt(Attempt& attempt, const FrontierStore& store, const Goal& goal) const {
    PricedProgram& priced = attempt.priced;
    if (goal.incumbent < attempt.judged_at) judge(attempt, goal.incumbent);
    if (attempt.cut) return;
    ProgramLimits limits;
    limits.incumbent = goal.incumbent;
    limits.accepted_gap = goal.accepted_gap;
    limits.label_budget = goal.labels;
    limits.keep = options_.top;
    limits.timed = options_.timed;
    limits.timed_incumbent = goal.timed_incumbent;
    limits.refine = [&](int option, int signature) {
      return price_frontier(priced, option, signature, model_, level_of(attempt.setting), signatures_, store);
    };
    attempt.solved = compose::solve(priced.program, limits);
  }

  // Notes down what was found, and what is now known of the task.
  void take(Attempt& attempt, const FrontierStore& store, Task& task) {
    if (attempt.cut) {
      task.bound = std::max(task.bound, attempt.judged_at);
      ++result_.statistics.programs_cut;
      return;
    }
    const ProgramResult& solved = attempt.solved;
    task.bound = std::max(task.bound, solved.bound);
    result_.statistics.frontier_plans += solved.frontier_plans;
    result_.statistics.labels += solved.labels;
    result_.statistics.states += solved.states;
    result_.statistics.cuts += solved.cuts;
    result_.statistics.cuts.slices_by_capacity += attempt.slices_cut;
    ++result_.statistics.programs;
    LevelReport& report = result_.levels[static_cast<std::size_t>(attempt.setting.level)];
    for (const Chain& chain : solved.chains) {
      report.best = std::min(report.best, Nanoseconds(chain.time));
      incumbent_ = std::min(incumbent_, of_interest(chain.time, accepted_gap_));
      result_.best.push_back(
          to_composition(model_, level_of(attempt.setting), attempt.priced, signatures_, store, chain));
    }
    keep_best(result_.best, options_.top);
    for (const TimedChain& timed : solved.timed) {
      result_.timed.push_back(
          {Nanoseconds(timed.time),
           to_composition(model_, level_of(attempt.setting), attempt.priced, signatures_, store, timed.chain)});
    }
    keep_fastest(result_.timed, options_.top);
    attempt.priced = {};
    attempt.solved = {};
  }

  [[nodiscard]] const cluster::IslandLevel& level_of(const Setting& setting) const {
    return hierarchy_.levels[static_cast<std::size_t>(setting.level)];
  }

  // Programs that ran out of their share are solved again. Where labels are scarce, first as if only much faster plans
  // were of interest: that says at little cost how far the best plan can be from the best of all. Then to the end, if
  // nothing stayed open and no less is left than this took.
  void finish(std::vector<Task> unfinished) {
    bool goes_on = true;
    if (!has_ample_labels() && !result_.best.empty() && accepted_gap_ < kFirstGap) {
      const std::int64_t before = labels_left();
      solve_again(unfinished, kFirstGap);
      const std::int64_t goal = of_interest(best_so_far(), kFirstGap);
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

  [[nodiscard]] bool has_ample_labels() const { return options_.label_budget >= kAmple; }

  // More keep all threads busy. Where each is searched to its end, one may need half of the labels.
  [[nodiscard]] std::size_t tasks_at_once() const { return has_ample_labels() ? 2 : 3; }

  // Each with a share of the labels that are left, which is noted down.
  void solve_in_order(std::vector<Task>& tasks, double gap, std::vector<std::int64_t>& shares) {
    // What is known once the first n tasks have ended. Behind one that stays open, none can raise the bound of all.
    struct Standing {
      Goal goal;
      std::int64_t open = INT64_MAX;  // bound of such a task
    };
    struct Turn {
      std::size_t task = 0;
      Goal goal;
      Batch batch;
    };
    const std::size_t at_once = tasks_at_once();
    const auto goal_of_task = [&] { return goal_now(gap, labels_left() / static_cast<std::int64_t>(at_once)); };
    std::vector<Standing> after(tasks.size() + 1);
    after[0].goal = goal_of_task();
    std::size_t next = 0;
    const auto begin = [&]() -> std::optional<Turn> {
      const Standing& known = after[next < at_once ? 0 : next + 1 - at_once];
      if (next == tasks.size() || known.goal.labels <= 0) return std::nullopt;
      if (tasks[next].bound >= std::min(known.goal.incumbent, known.open)) return std::nullopt;
      return Turn{next++, known.goal, {}};
    };
    const auto work = [&](Turn& turn) { turn.batch = solve_task(tasks[turn.task], turn.goal); };
    const auto end = [&](Turn& turn) {
      Task& task = tasks[turn.task];
      take(turn.batch, task, turn.goal);
      shares[turn.task] = turn.goal.labels;
      Standing& now = after[turn.task + 1];
      now = {goal_of_task(), after[turn.task].open};
      if (task.bound < now.goal.incumbent) now.open = std::min(now.open, task.bound);
    };
    take_turns<Turn>(at_once, begin, work, end);
  }

  [[nodiscard]] Goal goal_now(double gap, std::int64_t labels) const {
    return {gap == accepted_gap_ ? incumbent_ : of_interest(best_so_far(), gap), gap, labels,
            result_.timed.empty() ? INT64_MAX : result_.timed.front().time.value()};
  }

  [[nodiscard]] std::int64_t best_so_far() const { return result_.best.front().closed_form.value(); }

  [[nodiscard]] Batch solve_task(const Task& task, const Goal& goal) const {
    Batch batch = prepare({task.setting}, goal.incumbent);
    for (Attempt& attempt : batch.attempts) solve_attempt(attempt, *batch.store, goal);
    return batch;
  }

  void take(Batch& batch, Task& task, const Goal& goal) {
    note(batch);
    if (batch.attempts.empty()) task.bound = std::max(task.bound, goal.incumbent);
    for (Attempt& attempt : batch.attempts) take(attempt, *batch.store, task);
  }

  void conclude() {
    if (result_.best.empty() && open_bound_ != INT64_MAX) {
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
  const ProgressCallback& progress_;
  SignatureTable signatures_;
  std::vector<std::int64_t> sizes_;
  std::int64_t incumbent_;  // only times below it are of interest
  double accepted_gap_ = 0;
  std::int64_t open_bound_ = INT64_MAX;  // of programs that stayed unfinished
  std::size_t pairs_ = 0;                // of shapes in mixed stages
  int done_ = 0;
  int total_ = 0;
  Attempts attempts_;
  SearchResult result_;
};

}  // namespace

std::int64_t usual_label_budget(int gpus) {
  constexpr int kSmallFleet = 256;
  return gpus <= kSmallFleet ? kAmple : kAmple * 5 / 8;
}

MicroDollarsPerHour price_of(const cluster::IslandClass& island_class) {
  return MicroDollarsPerHour(std::llround(island_class.device.price_per_hour.value() * 1e6));
}

SearchResult search(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                    std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
                    const ProgressCallback& progress) {
  return Searcher(model, hierarchy, parallelizers, options, progress).run();
}

}  // namespace tangram::compose
