#include "search_record.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "space.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::compose {

SearchRecord::SearchRecord(const BatchMaker& batches, const SearchOptions& options, const ProgressCallback& progress,
                           std::size_t fastest)
    : batches_(batches),
      options_(options),
      progress_(progress),
      incumbent_(options.incumbent.value()),
      fastest_(fastest) {}

void SearchRecord::begin(const model::Model& model, const cluster::IslandHierarchy& hierarchy, int programs) {
  result_.space = name_space(model.job, hierarchy, options_);
  for (const auto& fixed : constraints(model.graph)) result_.space.rules.push_back("stages of " + to_string(fixed));
  if (!batches_.cuts().are_everywhere()) result_.space.rules.push_back(cut_rule(batches_.cuts()));
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    int islands = 0;
    for (const cluster::IslandClass& c : level.classes) islands += static_cast<int>(c.islands.size());
    result_.levels.push_back({level.name, static_cast<int>(level.classes.size()), islands});
  }
  total_ = programs;
  attempts_.no_batch = programs == 0;
}

void SearchRecord::accept_gap() {
  accepted_gap_ = options_.accepted_gap;
  if (has_plan()) incumbent_ = std::min(incumbent_, chain::of_interest(best(), accepted_gap_));
}

void SearchRecord::note(const Batch& batch) {
  report(batch.settings);
  result_.statistics.programs_cut += static_cast<std::int64_t>(batch.cut.size());
  if (batch.some_slice_fits) attempts_.some_slice_fits = true;
  count_queries(*batch.store);
  note_shortage(*batch.store);
}

void SearchRecord::count_queries(const FrontierStore& store) {
  result_.statistics.queries += store.queries();
  result_.statistics.partial_plans += store.partial_plans();
  for (std::size_t i = 0; i < store.tallies().size(); ++i) result_.parallelizers[i].add(store.tallies()[i]);
}

void SearchRecord::take(CandidateProgram& candidate, const std::shared_ptr<FrontierStore>& store,
                        OpenProgram& program) {
  if (candidate.cut) {
    program.bound = std::max(program.bound, candidate.compared_with);
    ++result_.statistics.programs_cut;
    return;
  }
  const chain::ProgramResult& solved = candidate.solved;
  program.bound = std::max(program.bound, solved.bound);
  result_.statistics.frontier_plans += solved.frontier_plans;
  result_.statistics.labels += solved.labels;
  result_.statistics.states += solved.states;
  result_.statistics.cuts += solved.cuts;
  result_.statistics.cuts.slices_by_capacity += candidate.slices_cut;
  ++result_.statistics.programs;
  take_chains(candidate, *store);
  take_timed(candidate, store);
}

void SearchRecord::take_chains(const CandidateProgram& candidate, const FrontierStore& store) {
  LevelReport& report = level_of(candidate.setting);
  for (const chain::Chain& chain : candidate.solved.chains) {
    report.best = std::min(report.best, Nanoseconds(chain.time));
    incumbent_ = std::min(incumbent_, chain::of_interest(chain.time, accepted_gap_));
    result_.best.push_back(batches_.composition_of(candidate, store, chain));
  }
  keep_best(result_.best, options_.top);
}

void SearchRecord::take_timed(CandidateProgram& candidate, const std::shared_ptr<FrontierStore>& store) {
  for (const chain::TimedChain& timed : candidate.solved.timed) {
    result_.timed.push_back({Nanoseconds(timed.time), batches_.composition_of(candidate, *store, timed.chain)});
  }
  keep_fastest(result_.timed, options_.top);
  fastest_.note(std::move(candidate), store);
}

void SearchRecord::take_moved(const BatchMaker& cuts, const PlacedChain& moved) {
  result_.statistics.labels += moved.candidate->solved.labels;
  keep_timed(cuts.composition_of(*moved.candidate, *moved.store, moved.timed.chain), moved.timed.time);
}

void SearchRecord::keep_timed(Composition composition, std::int64_t time) {
  result_.timed.push_back({Nanoseconds(time), std::move(composition)});
  keep_fastest(result_.timed, options_.top);
}

void SearchRecord::take_improved(const PlacedChain& improved) {
  Composition better = batches_.composition_of(*improved.candidate, *improved.store, improved.timed.chain);
  LevelReport& report = level_of(improved.candidate->setting);
  report.best = std::min(report.best, better.closed_form);
  // None is where the search has finished.
  if (better.closed_form.value() < incumbent_) {
    incumbent_ = chain::of_interest(better.closed_form.value(), accepted_gap_);
    result_.best.push_back(better);
    keep_best(result_.best, options_.top);
  }
  keep_timed(std::move(better), improved.timed.time);
}

void SearchRecord::sort_out(const OpenProgram& program, std::vector<OpenProgram>& open) {
  if (program.bound < incumbent_) {
    open.push_back(program);
  } else {
    close(program);
  }
}

void SearchRecord::close(const OpenProgram& program) {
  LevelReport& report = level_of(program.setting);
  report.bound = std::min(report.bound, Nanoseconds(program.bound));
}

void SearchRecord::leave_open(const OpenProgram& program) {
  close(program);
  open_bound_ = std::min(open_bound_, program.bound);
}

Goal SearchRecord::goal(double gap, std::int64_t labels) const {
  return {gap == accepted_gap_ ? incumbent_ : chain::of_interest(best(), gap), gap, labels,
          result_.timed.empty() ? INT64_MAX : result_.timed.front().time.value()};
}

SearchResult SearchRecord::conclude(const model::Model& model, const cluster::IslandLevel& finest) {
  if (!has_plan()) {
    conclude_without_plan(model, finest);
    return std::move(result_);
  }
  const Nanoseconds fastest = result_.best.front().closed_form;
  result_.finished = open_bound_ >= incumbent_;
  // The relaxation may be the better bound where the search did not go on to the end.
  const Nanoseconds searched(std::min(open_bound_, incumbent_));
  result_.search_bound = std::min(fastest, std::max(searched, result_.relaxed_bound));
  result_.optimal = result_.search_bound == fastest;
  return std::move(result_);
}

void SearchRecord::conclude_without_plan(const model::Model& model, const cluster::IslandLevel& finest) {
  if (open_bound_ == INT64_MAX) {
    attempts_.gpu_types = options_.constraints.gpu_types;
    result_.infeasible = explain_shortage(model, finest, attempts_);
    return;
  }
  result_.search_bound = std::max(Nanoseconds(open_bound_), result_.relaxed_bound);
  if (options_.deadline.is_missed()) {
    result_.infeasible = out_of_time(options_.deadline);
    return;
  }
  result_.infeasible = {
      problem(ErrorKind::kIncomplete, "budget-spent",
              "no plan found within " + std::to_string(options_.label_budget) + " labels; whether there is one is open",
              "give the search more with --time-budget, or forbid techniques to make the space smaller")};
}

void SearchRecord::note_shortage(const FrontierStore& store) {
  const Bytes shortage = store.shortage();
  if (shortage == Bytes(0)) return;
  if (attempts_.smallest_shortage == Bytes(0) || shortage < attempts_.smallest_shortage) {
    attempts_.smallest_shortage = shortage;
  }
}

void SearchRecord::report(const std::vector<Setting>& settings) {
  done_ += static_cast<int>(settings.size());
  if (!progress_ || settings.empty()) return;
  const Setting& last = settings.back();
  Progress progress;
  progress.done = std::min(done_, total_);
  progress.total = total_;
  progress.phase = "microbatch " + std::to_string(last.microbatch) + ", " + std::to_string(last.replicas) +
                   (last.replicas == 1 ? " pipeline" : " pipelines");
  if (has_plan()) progress.best = result_.best.front().closed_form;
  progress_(progress);
}

}  // namespace tangram::compose
