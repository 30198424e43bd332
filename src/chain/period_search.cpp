#include "period_search.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "bounds/completion_bound.hpp"
#include "periods.hpp"
#include "tangram/base/grid.hpp"
#include "timetable/solution_pool.hpp"
#include "windows/beam_pass.hpp"
#include "windows/incumbent.hpp"
#include "windows/label_searches.hpp"
#include "windows/period_floor.hpp"
#include "windows/window_queue.hpp"

namespace tangram::chain {

namespace {

class PeriodSearch {
 public:
  PeriodSearch(const Program& program, const ProgramLimits& limits)
      : program_(program),
        limits_(limits),
        fastest_(program, limits.tuning),
        frontiers_(program, limits_.refine),
        ends_(program, limits.tuning),
        incumbent_(program, limits_),
        searches_(ground_, limits_, result_),
        beam_(program, fastest_, searches_, incumbent_),
        floor_(program, limits_, fastest_, searches_, incumbent_),
        windows_(program, fastest_, incumbent_) {}

  ProgramResult run() {
    const auto [lowest, highest] = period_range();
    if (lowest > highest) return std::move(result_);
    if (limits_.only_timetables) {
      look_for_timetables(lowest, highest);
    } else {
      search(lowest, highest);
    }
    result_.chains = std::move(incumbent_.chains());
    result_.cuts.windows_by_bound = windows_.ruled_out();
    result_.frontier_plans = frontiers_.made();
    return std::move(result_);
  }

 private:
  // No chain's period is below that at which the units hold all blocks, nor is one above the latency of all of it.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> period_range() const {
    // A slower plan with less to synchronise may need a longer period than those of a relaxed frontier.
    const std::int64_t stage = slowest_stage(program_);
    const std::int64_t slowest = std::max(program_.slowest, stage);
    std::int64_t hop = 0;
    for (const Price& price : program_.interleaving.around) hop = std::max(hop, price.is_none() ? 0 : price.latency);
    for (const Grid<Price>& of_kind : program_.prices) {
      for (const Price& price : of_kind) hop = std::max(hop, price.is_none() ? 0 : price.latency);
    }
    const std::int64_t longest = std::max<std::int64_t>(1, (slowest + 2 * hop) * program_.blocks);
    return {shortest_period(program_, fastest_, stage), longest};
  }

  void search(std::int64_t lowest, std::int64_t highest) {
    windows_.push(lowest, highest, {}, tuning().first_ascent);
    if (!windows_.empty() && beam_.is_worth_it(windows_.top().bound)) beam_.over(lowest, highest);
    floor_.start_at(lowest);
    if (!windows_.empty() && tuning().cuts.rising_periods && floor_.is_worth_raising()) {
      floor_.raise(windows_.top().multipliers);
    }
    search_windows();
    result_.bound = std::min(result_.bound, incumbent_.best());
    look_near_best(lowest, highest);
  }

  // Smallest bound first.
  void search_windows() {
    for (int looked_on = 0; !windows_.empty();) {
      Window window = windows_.pop();
      if (window.bound >= incumbent_.best()) break;
      if (searches_.is_late()) {
        give_up(window);  // the smallest bound of all that is left
        break;
      }
      if (window.lo <= floor_.ruled_out()) {
        windows_.push(floor_.ruled_out() + 1, window.hi, window.multipliers, tuning().next_ascent);
        continue;
      }
      if (!result_.finished && ++looked_on > tuning().windows_without_proof) {
        give_up(window);
        break;
      }
      search_window(std::move(window));
    }
  }

  void search_window(Window window) {
    if (!windows_.is_narrow(window)) {
      windows_.split(window);
    } else if (!result_.finished) {
      look_at(window, bound_of(window));
    } else if (!window.relaxed && tuning().cuts.relaxed_frontier) {
      relax_window(std::move(window));
    } else {
      solve_window(window);
    }
  }

  // Relaxed frontiers say at little cost that nothing in the window is of interest, or which windows to solve first.
  void relax_window(Window window) {
    const std::int64_t base = all_periods(program_, window.lo);
    const std::int64_t most = searches_.labels_left();
    if (most <= 0) return give_up(window);
    const CompletionBound bound = bound_of(window);
    LabelQuery query = relaxed_query_at(window.hi, floor_.may_probe() ? std::min(most, tuning().hard_search) : most);
    query.cutoff = incumbent_.cutoff_at(base);
    const LabelAnswer answer = searches_.relaxed(bound, query);
    if (!answer.finished && query.label_budget < most) {
      floor_.raise_to_any_chain(window.multipliers);
      return windows_.put_back(std::move(window));
    }
    if (!answer.finished) return look_at(window, bound);
    if (!answer.found) return;
    window.bound = std::max(window.bound, base + answer.value);
    window.relaxed = true;
    windows_.put_back(std::move(window));
  }

  // At falling periods.
  void solve_window(const Window& window) {
    ++result_.windows;
    const std::int64_t base = all_periods(program_, window.lo);
    std::vector<double> multipliers = window.multipliers;
    for (std::int64_t hi = window.hi; hi >= window.lo;) {
      const CompletionBound bound(program_, fastest_, hi, multipliers, tuning().window_ascent, kNoCompletion);
      if (bound.root() == kNoCompletion) return;
      multipliers = bound.multipliers();
      LabelQuery query;
      query.period = hi;
      query.cutoff = incumbent_.cutoff_at(base);
      if (static_cast<double>(query.cutoff) + 1.0 < bound.root()) return;
      query.label_budget = searches_.labels_left();
      if (query.label_budget <= 0) return give_up(window);
      LabelAnswer answer = searches_.exact(bound, query);
      std::int64_t period = hi;
      if (answer.chain) period = incumbent_.keep(std::move(*answer.chain));
      if (!answer.finished) {
        if (beam_.is_on()) beam_.at(bound, hi, base, true);
        return give_up(window);
      }
      if (!answer.found) return;
      // Chains at periods up to hi cost at least `value`, so only smaller periods can do better. The one found is the
      // best of its own period, too, unless what interleaved chains wait for the way around is longer there.
      if (program_.microbatches == 1) return;
      const std::int64_t in_time = (incumbent_.best() - 1 - answer.value) / (program_.microbatches - 1);
      hi = program_.is_interleaved() ? in_time : std::min(period - 1, in_time);
    }
  }

  [[nodiscard]] CompletionBound bound_of(const Window& window) const {
    return {program_, fastest_, window.hi, window.multipliers, tuning().window_ascent, kNoCompletion};
  }

  // A window that is not solved: the beam search may still find something in it.
  void look_at(const Window& window, const CompletionBound& bound) {
    if (bound.root() == kNoCompletion) return;
    if (beam_.is_on()) beam_.at(bound, window.hi, all_periods(program_, window.lo), true);
    give_up(window);
  }

  void give_up(const Window& window) {
    result_.finished = false;
    result_.bound = std::min(result_.bound, window.bound);
  }

  // Where no chain is of interest by closed form, one may be pass by pass.
  void look_near_best(std::int64_t lowest, std::int64_t highest) {
    if (!limits_.timed || !tuning().cuts.timetable_pool || tuning().beam <= 0) return;
    PoolQuery query{lowest, highest, limits_.timed_incumbent, tuning().beam, incumbent_.chains()};
    query.starts = static_cast<std::size_t>(tuning().local_starts);
    query.most_of_fill = tuning().reach_of_fill;
    if (query.chains.empty()) {
      if (limits_.incumbent == kNever) return;
      const auto beyond = tuning().reach_beyond * static_cast<double>(limits_.incumbent);
      query.slowest = limits_.incumbent + static_cast<std::int64_t>(beyond);
    }
    SolutionPool near = fill_pool(ground_, fastest_, query);
    result_.beam_labels += near.labels;
    for (const TimedChain& timed : near.timed) {
      Chain chain = timed.chain;
      if (evaluate(program_, chain) && chain.time < incumbent_.best()) incumbent_.keep(std::move(chain));
    }
    result_.timed = std::move(near.timed);
  }

  // Proves nothing. Few chains of so small programs are missed by a wide beam, and what local search makes of one may
  // be faster than its own least time says.
  void look_for_timetables(std::int64_t lowest, std::int64_t highest) {
    PoolQuery query{lowest, highest, limits_.timed_incumbent, tuning().wide_beam, {}};
    query.mixed = true;
    query.starts = static_cast<std::size_t>(tuning().local_starts_alone);
    query.least_time_share = tuning().start_above_alone;
    query.slowest = limits_.incumbent;
    query.most_of_fill = tuning().most_of_fill;
    SolutionPool near = fill_pool(ground_, fastest_, query);
    result_.beam_labels = near.labels;
    result_.timed = std::move(near.timed);
    result_.finished = false;
    result_.bound = 0;
  }

  [[nodiscard]] const SolverTuning& tuning() const { return limits_.tuning; }

  const Program& program_;
  const ProgramLimits limits_;
  const FastestPlans fastest_;
  Frontiers frontiers_;
  const EndCosts ends_;
  const LabelGround ground_{program_, frontiers_, ends_, limits_.deadline};
  ProgramResult result_;  // its bound: of windows that were given up
  Incumbent incumbent_;
  LabelSearches searches_;
  BeamPass beam_;
  PeriodFloor floor_;
  WindowQueue windows_;
};

}  // namespace

ProgramResult search_periods(const Program& program, const ProgramLimits& limits) {
  return PeriodSearch(program, limits).run();
}

}  // namespace tangram::chain
