// What the solver spends its effort on: every number that was chosen, not derived, and every bound and cut that can be
// switched off. Goes in: nothing; the defaults are what is planned with. No number makes a result wrong: they say how
// many labels and how much time an answer takes, and how far the searches look that prove nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tangram::chain {

/// Bounds and cuts that are on. Without any of them the solver still finds the optimum.
struct SolverCuts {
  bool completion = true;        ///< completion_bound.hpp: what labels still have to pay
  bool unit_prices = true;       ///< the same with units that cost something: subgradient steps
  bool cover = true;             ///< completion_bound.hpp: whether priced units cover the blocks left
  bool capacity = true;          ///< capacity.hpp: whether whole stages on the units left hold the blocks left
  bool knapsack = true;          ///< knapsack_bound.hpp: the least time of whole stages on the units left
  bool end_floor = true;         ///< end_floor.hpp: what forward and backward passes still add to the end
  bool dominance = true;         ///< label.hpp: labels that are no better than another of their state
  bool relaxed_frontier = true;  ///< relaxed_frontier.hpp: windows are searched for the fastest plans first
  bool rising_periods = true;    ///< periods are ruled out in growing steps before windows are searched
  bool feasible_periods = true;  ///< periods are ruled out that hold no chain, however slow
  bool components = true;        ///< components.hpp: shapes that only slow links join are searched apart
  bool presolve = true;          ///< relaxation.hpp: slices that no chain of interest has
  bool incumbents = true;        ///< beam searches for chains that the exact search can cut with
  bool timetable_pool = true;    ///< solution_pool.hpp: chains near the best, pass by pass
  bool operator==(const SolverCuts&) const = default;
};

/// A bound or cut by its name.
struct SolverCut {
  std::string_view name;
  bool SolverCuts::* is_on;
  std::string_view summary;
};

/// All of them.
[[nodiscard]] std::span<const SolverCut> solver_cuts();

struct SolverTuning {
  // Beam searches.
  int beam = 16;                 ///< labels per position of those that find incumbents: few, as there are many of them
  int wide_beam = 256;           ///< of those that look for any chain a period allows; 0: none looks
  int groups_per_beam = 4;       ///< groups of extensions that a position keeps, times the width
  int inserted_per_beam = 2;     ///< labels that enter a position, times the width: later ones beat some of them
  double period_growth = 1.025;  ///< from one period of a beam search to the next
  double far_from_bound = 1.15;  ///< incumbents so many times above a program's bound call for a beam search
  // Windows of periods.
  double window_share = 0.005;      ///< how far periods of a window lie apart: all together, of the best time
  std::int64_t hard_search = 8192;  ///< labels of a relaxed search from which on simpler searches go before it
  int windows_without_proof = 8;    ///< looked at once the bound can not rise any more
  double first_rise = 0.01;         ///< of a period: how far beyond it is tried first to rule out more
  double last_rise = 0.004;         ///< of a period: closer ones are told apart by windows
  std::int64_t rise_share = 8;      ///< one such try may take this part of the labels left
  // Bounds.
  int first_ascent = 24;           ///< subgradient steps from prices of nothing: then they hardly rise
  int next_ascent = 10;            ///< from the prices of a period nearby
  int window_ascent = 2;           ///< from the prices of the same window
  double first_price_step = 0.5;   ///< of the bound without prices: length of the first step
  double price_step_decay = 0.85;  ///< from one step to the next: after 24 steps a fiftieth is left
  int floor_ascent = 8;            ///< subgradient steps of an end floor, made anew for each period
  double floor_step_decay = 0.8;   ///< from one of them to the next: after 8 steps a sixth is left
  int most_depths = 64;            ///< numbers of microbatches in flight that bounds tell apart
  std::array<int, 12> knapsack_depths{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};  ///< and knapsacks: each has tables
  int least_share_of_kind = 4;   ///< kinds of blocks below this part of all have no covers of their own
  double root_window = 1.06;     ///< from period to period of the bound that takes no search
  int presolve_windows = 40;     ///< looked at for the longest period of interest, at most
  double presolve_width = 0.01;  ///< of the time: periods of such a window, all together
  // Timetables.
  double timetable_reach = 0.1;    ///< closed forms above the best by at most this share are looked at pass by pass
  double reach_of_fill = 0.6;      ///< and by this part of what fills and drains the pipeline: measured, not proven
  double reach_beyond = 0.03;      ///< above the incumbent, where no chain is better by closed form
  double most_of_fill = 0.9;       ///< likewise, where few stages follow the one that sets the period
  int local_starts = 8;            ///< chains that are improved by local search
  int local_starts_alone = 128;    ///< and where only timetables are looked for
  double start_above_alone = 1.3;  ///< least times up to so many times the fastest timetable start one there
  std::int64_t local_effort = 8'000'000;  ///< passes of timetables to improve one: few need as many
  std::int64_t form_effort = 64;          ///< passes that one closed form takes the time of, per stage
  std::int64_t least_time_effort = 4;     ///< likewise, one least time
  double promising = 1.003;               ///< timetables up to so many times the best: more in flight is tried
  double near_miss = 1.005;               ///< likewise: another change is tried from the chain
  std::size_t near_misses = 3;            ///< the fastest of these

  SolverCuts cuts;
  bool operator==(const SolverTuning&) const = default;
};

}  // namespace tangram::chain
