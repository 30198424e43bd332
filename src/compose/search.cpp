#include "tangram/compose/search.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "batch.hpp"
#include "cut_points.hpp"
#include "final_local_search.hpp"
#include "open_programs.hpp"
#include "ordered_pipeline.hpp"
#include "search_record.hpp"
#include "search_slices.hpp"
#include "space.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/chain/radices.hpp"
#include "tangram/relax/relaxed_bound.hpp"
#include "tangram/relax/state_memory.hpp"

namespace tangram::compose {

namespace {

class Searcher {
 public:
  Searcher(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
           std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
           const SignatureTable& signatures, ScreenedSizes& screened, const ProgressCallback& progress)
      : model_(model),
        hierarchy_(hierarchy),
        parallelizers_(parallelizers),
        options_(options),
        tuning_(options.tuning.programs),
        batches_(model, hierarchy, parallelizers, options, signatures),
        screened_(screened),
        record_(batches_, options, progress,
                looks_at_all_timetables() ? static_cast<std::size_t>(tuning_.last_starts) : 1) {}

  SearchResult run() {
    if (has_too_many_classes()) return std::move(record_.result());
    list_programs();
    SearchResult& result = record_.result();
    for (const parallelizer::Parallelizer* p : parallelizers_) result.parallelizers.emplace_back().info = p->info();
    tbb::task_group beside;
    beside.run([&] { result.relaxed_bound = options_.relaxed_bound ? *options_.relaxed_bound : without_search(); });
    const cluster::IslandLevel& finest = hierarchy_.levels.front();
    const Bytes usable = relax::usable_memory(finest, options_.constraints.gpu_types);
    if (relax::least_state(model_) <= usable) search_programs();  // else no sharding helps
    beside.wait();
    return record_.conclude(model_, finest);
  }

 private:
  // States count the units of every class.
  [[nodiscard]] bool has_too_many_classes() {
    std::size_t most = 0;
    for (const cluster::IslandLevel& level : hierarchy_.levels) most = std::max(most, level.classes.size());
    if (most <= chain::kMostClasses) return false;
    record_.result().infeasible = {problem(ErrorKind::kInput, "too-many-classes",
                                           "the fleet has " + std::to_string(most) + " kinds of islands, at most " +
                                               std::to_string(chain::kMostClasses) + " can be told apart",
                                           "let GPUs that differ little count as alike with a larger --tolerance")};
    return true;
  }

  void list_programs() {
    sizes_ = settings_by_size(model_, hierarchy_, options_);
    int programs = 0;
    for (const SizeSettings& size : sizes_) programs += static_cast<int>(size.settings.size());
    record_.begin(model_, hierarchy_, programs);
    std::erase_if(sizes_, [&](const SizeSettings& size) { return !batches_.suits_degrees(size.microbatch); });
  }

  [[nodiscard]] Nanoseconds without_search() const {
    return relax::relaxed_bound(model_, hierarchy_, are_modelled(parallelizers_), options_.profiles,
                                options_.tuning.bound, std::ranges::max(options_.constraints.chunks), options_.deadline,
                                options_.constraints.put_off);
  }

  void search_programs() {
    if (tuning_.first_look) look_first();
    record_.accept_gap();
    std::vector<OpenProgram> unfinished;
    solve_sizes(unfinished);
    OpenPrograms(batches_, options_, record_).finish(std::move(unfinished));
    if (is_worth_timetables()) look_for_timetables();
    if (tuning_.last_local_search)
      FinalLocalSearch(model_, hierarchy_, parallelizers_, batches_, options_, record_).run();
  }

  // ---- the first look: one pipeline on the largest shapes, whose plan spares most questions about the others ----

  void look_first() {
    if (record_.incumbent() != INT64_MAX) return;
    first_look_within(likely_time());
    if (!record_.has_plan()) first_look_within(INT64_MAX);
  }

  // Plans that take longer are hardly worth a first look: at so small a share of their peak no fleet is well used.
  [[nodiscard]] std::int64_t likely_time() const {
    const std::int64_t slowest = tuning_.slowest_likely;
    const Nanoseconds least = relax::relaxed_bound(model_, hierarchy_, /*modelled=*/false, options_.profiles);
    return slowest * std::min(least.value(), INT64_MAX / slowest);
  }

  void first_look_within(std::int64_t time) {
    const auto most = static_cast<std::size_t>(tuning_.first_look_sizes);
    for (std::size_t i = 0; i < std::min(most, sizes_.size()); ++i) {
      const Setting& setting = sizes_[i].settings.front();
      if (setting.replicas > 1) continue;  // only replicas use this size
      Batch batch = batches_.first_look(setting, std::min(time, record_.incumbent()), record_.incumbent());
      std::vector<OpenProgram> ignored;
      solve(batch, ignored);
    }
  }

  // ---- all programs, each with a first share of the labels ----

  // While one size is solved the next ones are prepared, by what is known before them all.
  void solve_sizes(std::vector<OpenProgram>& unfinished) {
    struct SolveRecord {
      std::size_t size = 0;
      std::int64_t incumbent = 0;
      Batch batch;
    };
    const auto at_once = static_cast<std::size_t>(tuning_.sizes_at_once);
    StatesInOrder<std::int64_t> incumbents(sizes_.size(), at_once, record_.incumbent());
    std::size_t next = 0;
    const auto begin = [&]() -> std::optional<SolveRecord> {
      if (next == sizes_.size() || is_late()) return std::nullopt;
      const std::int64_t incumbent = incumbents.known_to(next);
      return SolveRecord{next++, incumbent, {}};
    };
    const auto work = [&](SolveRecord& record) { record.batch = prepare(sizes_[record.size], record.incumbent); };
    const auto end = [&](SolveRecord& record) {
      solve(record.batch, unfinished);
      incumbents.after(record.size + 1) = record_.incumbent();
    };
    run_in_order<SolveRecord>(at_once, begin, work, end);
    for (; next < sizes_.size(); ++next) leave_open(sizes_[next].settings, unfinished);
  }

  [[nodiscard]] Batch prepare(const SizeSettings& size, std::int64_t incumbent) const {
    // It says nothing of one chunk, which is searched again where its labels were too few.
    const bool is_chunked = std::ranges::max(options_.constraints.chunks) > 1;
    if (is_chunked && screened_.has(size.microbatch, incumbent)) return batches_.screened_before(size.settings);
    Batch batch = batches_.prepare(size.settings, incumbent);
    if (batch.screened && !batch.chunked_left) screened_.note(size.microbatch, incumbent);
    return batch;
  }

  // Nothing is known of them.
  void leave_open(const std::vector<Setting>& settings, std::vector<OpenProgram>& unfinished) {
    for (const Setting& setting : settings) record_.sort_out({setting, 0}, unfinished);
  }

  [[nodiscard]] bool is_late() const { return options_.deadline.has_passed(); }

  // In waves of fixed size: the programs of a wave know the same incumbent, so that nothing depends on which of them
  // ends first, nor on how many threads there are.
  void solve(Batch& batch, std::vector<OpenProgram>& unfinished) {
    record_.note(batch);
    if (batch.late) return leave_open(batch.settings, unfinished);
    for (const Setting& setting : batch.cut) record_.close({setting, record_.incumbent()});
    std::vector<CandidateProgram>& open = batch.candidates;
    const auto at_once = static_cast<std::size_t>(tuning_.programs_at_once);
    for (std::size_t from = 0; from < open.size(); from += at_once) {
      const std::size_t to = std::min(open.size(), from + at_once);
      const std::int64_t share = record_.labels_left() / static_cast<std::int64_t>(to - from);
      const Goal goal = record_.goal(record_.accepted_gap(), std::min(first_share(), share));
      tbb::parallel_for(from, to, [&](std::size_t i) { batches_.solve(open[i], *batch.store, goal); });
      for (std::size_t i = from; i < to; ++i) take(open[i], batch.store, unfinished);
    }
  }

  void take(CandidateProgram& candidate, const std::shared_ptr<FrontierStore>& store,
            std::vector<OpenProgram>& unfinished) {
    OpenProgram program{candidate.setting};
    record_.take(candidate, store, program);
    record_.sort_out(program, unfinished);
  }

  [[nodiscard]] std::int64_t first_share() const {
    return std::clamp<std::int64_t>(options_.label_budget / tuning_.first_pass_share, 1, tuning_.first_pass);
  }

  // ---- timetables: programs none of whose closed forms is the best may hold the fastest one ----

  [[nodiscard]] bool is_small() const { return gpus() <= tuning_.timetable_gpus; }

  // Where a stage holds no more microbatches than its place asks for, closed forms leave little open.
  [[nodiscard]] bool looks_at_all_timetables() const {
    const bool is_free = options_.constraints.semantics.warmup == runtime::Warmup::kFree;
    return is_small() || (is_free && gpus() <= tuning_.near_timetable_gpus);
  }

  // Of programs that are looked at: elsewhere those alone that fill and drain most of the time.
  [[nodiscard]] std::int64_t most_microbatches() const {
    if (looks_at_all_timetables()) return INT64_MAX;
    return gpus() <= tuning_.few_timetable_gpus ? tuning_.few_microbatches : 0;
  }

  [[nodiscard]] int gpus() const { return gpu_count(hierarchy_.levels.front(), options_.constraints.gpu_types); }

  [[nodiscard]] bool is_worth_timetables() const {
    return tuning_.small_fleet_timetables && options_.timed && record_.has_plan() && most_microbatches() > 0;
  }

  [[nodiscard]] std::vector<SizeSettings> sizes_for_timetables() const {
    std::vector<SizeSettings> sizes = sizes_;
    const auto has_more = [most = most_microbatches()](const Setting& setting) { return setting.microbatches > most; };
    for (SizeSettings& size : sizes) std::erase_if(size.settings, has_more);
    std::erase_if(sizes, [](const SizeSettings& size) { return size.settings.empty(); });
    return sizes;
  }

  // Closed forms below this (ns) are of interest.
  [[nodiscard]] std::int64_t timetables_below() const {
    const double reach = is_small() ? tuning_.timetable_reach : tuning_.near_timetable_reach;
    return static_cast<std::int64_t>((1 + reach) * static_cast<double>(record_.best()));
  }

  // All programs within reach are looked at once more.
  void look_for_timetables() {
    struct LookRecord {
      std::size_t size = 0;
      Goal goal;
      Batch batch;
    };
    const auto next_goal = [&, below = timetables_below()] {
      Goal goal = record_.goal(record_.accepted_gap(), 0);
      goal.incumbent = below;
      goal.only_timetables = true;
      return goal;
    };
    const auto at_once = static_cast<std::size_t>(tuning_.sizes_at_once);
    const std::vector<SizeSettings> sizes = sizes_for_timetables();
    StatesInOrder<Goal> goals(sizes.size(), at_once, next_goal());
    std::size_t next = 0;
    const auto begin = [&]() -> std::optional<LookRecord> {
      if (next == sizes.size() || is_late()) return std::nullopt;
      const Goal& goal = goals.known_to(next);
      return LookRecord{next++, goal, {}};
    };
    const auto work = [&](LookRecord& look) {
      look.batch = batches_.prepare(sizes[look.size].settings, look.goal.incumbent);
      std::vector<CandidateProgram>& candidates = look.batch.candidates;
      tbb::parallel_for(std::size_t{0}, candidates.size(),
                        [&](std::size_t i) { batches_.solve(candidates[i], *look.batch.store, look.goal); });
    };
    const auto end = [&](LookRecord& look) {
      record_.count_queries(*look.batch.store);
      for (CandidateProgram& candidate : look.batch.candidates) record_.take_timed(candidate, look.batch.store);
      goals.after(look.size + 1) = next_goal();
    };
    run_in_order<LookRecord>(at_once, begin, work, end);
  }

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  std::span<const parallelizer::Parallelizer* const> parallelizers_;
  const SearchOptions& options_;
  const ProgramTuning& tuning_;
  BatchMaker batches_;
  ScreenedSizes& screened_;
  SearchRecord record_;
  std::vector<SizeSettings> sizes_;  // in the order of trying
};

}  // namespace

std::int64_t usual_label_budget(int gpus, const ProgramTuning& tuning) {
  if (gpus <= tuning.fully_searched_gpus) return tuning.ample_labels;
  return static_cast<std::int64_t>(static_cast<double>(tuning.ample_labels) * tuning.budget_beyond);
}

SignatureTable signatures_of(const model::Model& model, const SearchOptions& options) {
  return {model, CutPoints(model, cut_spacing(model, options.cuts))};
}

SearchResult search_slices(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                           std::span<const parallelizer::Parallelizer* const> parallelizers,
                           const SearchOptions& options, const SignatureTable& signatures, ScreenedSizes& screened,
                           const ProgressCallback& progress) {
  return Searcher(model, hierarchy, parallelizers, options, signatures, screened, progress).run();
}

SearchResult search(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                    std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
                    const ProgressCallback& progress) {
  ScreenedSizes screened;
  return search_slices(model, hierarchy, parallelizers, options, signatures_of(model, options), screened, progress);
}

}  // namespace tangram::compose
