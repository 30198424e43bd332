#include "open_programs.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "ordered_pipeline.hpp"

namespace tangram::compose {

void OpenPrograms::finish(std::vector<OpenProgram> programs) {
  if (!looks_for_wide_gaps() || look_for_wide_gaps(programs)) solve_again(programs, record_.accepted_gap());
  for (const OpenProgram& program : programs) record_.leave_open(program);
}

bool OpenPrograms::looks_for_wide_gaps() const {
  const ProgramTuning& tuning = options_.tuning.programs;
  return tuning.wide_gap_first && !has_ample_labels() && record_.has_plan() && record_.accepted_gap() < tuning.wide_gap;
}

bool OpenPrograms::look_for_wide_gaps(std::vector<OpenProgram>& programs) {
  const double gap = options_.tuning.programs.wide_gap;
  const std::int64_t before = record_.labels_left();
  solve_again(programs, gap);
  const std::int64_t goal = chain::of_interest(record_.best(), gap);
  const bool is_proven = std::ranges::all_of(programs, [&](const OpenProgram& open) { return open.bound >= goal; });
  return is_proven && record_.labels_left() >= before - record_.labels_left();
}

// Leaves what is still open.
void OpenPrograms::solve_again(std::vector<OpenProgram>& programs, double gap) {
  std::ranges::stable_sort(programs, {}, &OpenProgram::bound);
  std::vector<std::int64_t> shares(programs.size(), 0);
  solve_in_order(programs, gap, shares);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Goal goal = record_.goal(gap, record_.labels_left());
    if (programs[i].bound >= goal.incumbent || goal.labels <= shares[i]) continue;
    Batch batch = solve(programs[i], goal);
    take(batch, programs[i], goal);
    if (programs[i].bound < goal.incumbent) break;
  }
  std::vector<OpenProgram> still_open;
  for (const OpenProgram& program : programs) record_.sort_out(program, still_open);
  programs = std::move(still_open);
}

// Each with a share of the labels that are left, which is noted down.
void OpenPrograms::solve_in_order(std::vector<OpenProgram>& programs, double gap, std::vector<std::int64_t>& shares) {
  // What is known once the first n programs have ended. Behind one that stays open, none can raise the bound of all.
  struct StateAfter {
    Goal goal;
    std::int64_t open = INT64_MAX;  // bound of such a program
  };
  struct SolveRecord {
    std::size_t program = 0;
    Goal goal;
    Batch batch;
  };
  const std::size_t beside = at_once();
  const auto next_goal = [&] { return record_.goal(gap, record_.labels_left() / static_cast<std::int64_t>(beside)); };
  StatesInOrder<StateAfter> states(programs.size(), beside, {next_goal()});
  std::size_t next = 0;
  const auto begin = [&]() -> std::optional<SolveRecord> {
    const StateAfter& known = states.known_to(next);
    if (next == programs.size() || known.goal.labels <= 0) return std::nullopt;
    if (programs[next].bound >= std::min(known.goal.incumbent, known.open)) return std::nullopt;
    return SolveRecord{next++, known.goal, {}};
  };
  const auto work = [&](SolveRecord& record) { record.batch = solve(programs[record.program], record.goal); };
  const auto end = [&](SolveRecord& record) {
    OpenProgram& program = programs[record.program];
    take(record.batch, program, record.goal);
    shares[record.program] = record.goal.labels;
    StateAfter& now = states.after(record.program + 1);
    now = {next_goal(), states.after(record.program).open};
    if (program.bound < now.goal.incumbent) now.open = std::min(now.open, program.bound);
  };
  run_in_order<SolveRecord>(beside, begin, work, end);
}

void OpenPrograms::take(Batch& batch, OpenProgram& program, const Goal& goal) {
  record_.note(batch);
  if (batch.late) return;
  if (batch.candidates.empty()) program.bound = std::max(program.bound, goal.incumbent);
  for (CandidateProgram& candidate : batch.candidates) record_.take(candidate, batch.store, program);
}

Batch OpenPrograms::solve(const OpenProgram& program, const Goal& goal) const {
  Batch batch = batches_.prepare({program.setting}, goal.incumbent);
  for (CandidateProgram& candidate : batch.candidates) batches_.solve(candidate, *batch.store, goal);
  return batch;
}

bool OpenPrograms::has_ample_labels() const { return options_.label_budget >= options_.tuning.programs.ample_labels; }

// More keep all threads busy. Where each is searched to its end, one may need half of the labels.
std::size_t OpenPrograms::at_once() const {
  const ProgramTuning& tuning = options_.tuning.programs;
  return static_cast<std::size_t>(has_ample_labels() ? tuning.unfinished_at_once_if_ample : tuning.unfinished_at_once);
}

}  // namespace tangram::compose
