#include "period_search.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "bounds/completion_bound.hpp"
#include "labels/label.hpp"
#include "labels/label_search.hpp"
#include "periods.hpp"
#include "tangram/base/assert.hpp"
#include "timetable/solution_pool.hpp"

namespace tangram::chain {

namespace {

constexpr std::int64_t kAnyTime = INT64_MAX / 4;  // a cutoff that cuts nothing

struct Window {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::int64_t bound = 0;  // on the time of any chain whose period lies in it
  std::vector<double> multipliers;
  std::int64_t order = 0;
  bool relaxed = false;  // its bound is that of relaxed frontiers

  bool operator<(const Window& other) const {  // for a queue that pops the smallest bound, the earliest first
    return std::pair(bound, order) > std::pair(other.bound, other.order);
  }
};

enum class Question : std::uint8_t { kChainInTime, kAnyChain };

class PeriodSearch {
 public:
  PeriodSearch(const Program& program, const ProgramLimits& limits)
      : program_(program),
        limits_(limits),
        fastest_(program, limits.tuning),
        frontiers_(program, limits_.refine),
        ends_(program, limits.tuning),
        best_(limits.incumbent) {}

  ProgramResult run() {
    const auto [lowest, highest] = period_range();
    if (lowest > highest) return std::move(result_);
    if (limits_.only_timetables) return look_for_timetables(lowest, highest);
    push(lowest, highest, {}, tuning_.first_ascent);
    if (!queue_.empty() && is_worth_seeding(queue_.top().bound)) {
      // Mixed stages multiply the plans to look at and rarely decide: only where nothing else was found.
      find_incumbent(lowest, highest, false);
      if (best_ == kNever) find_incumbent(lowest, highest, true);
    }
    ruled_out_ = lowest - 1;
    if (!queue_.empty() && cuts_.rising_periods && is_worth_raising()) raise(queue_.top().multipliers);
    search_windows();
    result_.bound = std::min(unfinished_, best_);
    look_near_best(lowest, highest);
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
    for (const Price& price : program_.prices) hop = std::max(hop, price.is_none() ? 0 : price.latency);
    const std::int64_t longest = std::max<std::int64_t>(1, (slowest + 2 * hop) * program_.blocks);
    return {shortest_period(program_, fastest_, stage), longest};
  }

  [[nodiscard]] bool is_narrow(const Window& window) const {
    const std::int64_t reference = best_ == kNever ? window.bound : best_;
    const auto apart = static_cast<double>((program_.microbatches - 1) * (window.hi - window.lo));
    return window.hi - window.lo <= 1 || apart <= tuning_.window_share * static_cast<double>(reference);
  }

  [[nodiscard]] bool is_worth_seeding(std::int64_t bound) const {
    if (!looks_for_incumbents()) return false;
    return best_ == kNever || static_cast<double>(best_) > tuning_.far_from_bound * static_cast<double>(bound);
  }

  [[nodiscard]] bool looks_for_incumbents() const { return tuning_.beam > 0 && cuts_.incumbents; }

  // Smallest bound first.
  void search_windows() {
    for (int looked_on = 0; !queue_.empty();) {
      Window window = queue_.top();
      queue_.pop();
      if (window.bound >= best_) break;
      if (window.lo <= ruled_out_) {
        push(ruled_out_ + 1, window.hi, window.multipliers, tuning_.next_ascent);
        continue;
      }
      if (!result_.finished && ++looked_on > tuning_.windows_without_proof) {
        give_up(window);  // the smallest bound of all that is left
        break;
      }
      if (!is_narrow(window)) {
        split(window);
      } else if (!result_.finished) {
        look_at(window, bound_of(window));
      } else if (!window.relaxed && cuts_.relaxed_frontier) {
        relax_window(std::move(window));
      } else {
        solve_window(window);
      }
    }
  }

  // A beam search over a ladder of periods with a narrow beam: gives the exact search an incumbent to cut with.
  void find_incumbent(std::int64_t lowest, std::int64_t highest, bool mixed) {
    std::vector<double> multipliers;
    for (std::int64_t lo = lowest, hi = lowest;;) {
      const std::int64_t base = (program_.microbatches - 1) * lo;
      if (best_ != kNever && base >= best_) return;
      const CompletionBound bound(program_, fastest_, hi, multipliers, ascent_from(multipliers, tuning_),
                                  kNoCompletion);
      if (bound.root() != kNoCompletion) multipliers = bound.multipliers();
      if (bound.root() <= static_cast<double>(cutoff_at(base)) + 1.0) beam_search(bound, hi, base, mixed);
      if (hi >= highest || program_.microbatches == 1) return;
      lo = hi + 1;
      hi = std::min(highest, rung_from(hi, tuning_));
    }
  }

  [[nodiscard]] static LabelQuery relaxed_query_at(std::int64_t period, std::int64_t most_labels) {
    LabelQuery query;
    query.period = period;
    query.cutoff = kAnyTime;
    query.relaxed = true;
    query.label_budget = most_labels;
    return query;
  }

  LabelAnswer search_relaxed(const CompletionBound& bound, const LabelQuery& query) {
    LabelAnswer answer;
    if (bound.root() == kNoCompletion || bound.root() > static_cast<double>(query.cutoff) + 1.0) return answer;
    answer = search_labels(ground_, bound, query);
    count(answer);
    result_.labels += answer.labels;
    return answer;
  }

  // What of [lo, hi] may be of interest, if anything: periods alone may take too long, or the bound say so.
  [[nodiscard]] std::optional<Window> window_of(std::int64_t lo, std::int64_t hi, std::vector<double> multipliers,
                                                int ascent) const {
    const std::int64_t base = (program_.microbatches - 1) * lo;
    const double enough = best_ == kNever ? kNoCompletion : static_cast<double>(best_ - base) + 2.0;
    const CompletionBound bound(program_, fastest_, hi, std::move(multipliers), ascent, enough,
                                CompletionBound::Extent::kRoot);
    const std::int64_t rest = bound.least_end(best_ == kNever ? kNever : best_ - base);
    if (rest == kNever || base + rest >= best_) return std::nullopt;
    return Window{lo, hi, base + rest, bound.multipliers(), 0, false};
  }

  [[nodiscard]] std::int64_t longest_worth_a_look() const {
    return best_ == kNever || program_.microbatches == 1 ? kNever : longest_of_interest();
  }

  void push(std::int64_t lo, std::int64_t hi, std::vector<double> multipliers, int ascent) {
    hi = std::min(hi, longest_worth_a_look());
    if (lo <= hi) push(window_of(lo, hi, std::move(multipliers), ascent));
  }

  void push(std::optional<Window> window) {
    if (!window) {
      ++result_.cuts.windows_by_bound;
      return;
    }
    window->order = next_order_++;
    queue_.push(std::move(*window));
  }

  // Both halves at once, as nothing is found between them. A thread that waits for the other half does not begin
  // another program.
  void split(const Window& window) {
    const double middle = std::sqrt(static_cast<double>(window.lo) * static_cast<double>(window.hi));
    const std::int64_t cut = std::clamp(static_cast<std::int64_t>(middle), window.lo, window.hi - 1);
    const std::int64_t end = std::min(window.hi, longest_worth_a_look());
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    if (window.lo <= end) ranges.emplace_back(window.lo, std::min(cut, end));
    if (cut < end) ranges.emplace_back(cut + 1, end);
    std::vector<std::optional<Window>> halves(ranges.size());
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(std::size_t{0}, ranges.size(), [&](std::size_t i) {
        halves[i] = window_of(ranges[i].first, ranges[i].second, window.multipliers, tuning_.next_ascent);
      });
    });
    for (std::optional<Window>& half : halves) push(std::move(half));
  }

  // Relaxed frontiers say at little cost that nothing in the window is of interest, or which windows to solve first.
  void relax_window(Window window) {
    const std::int64_t base = (program_.microbatches - 1) * window.lo;
    const std::int64_t most = limits_.label_budget - result_.labels;
    if (most <= 0) return give_up(window);
    const CompletionBound bound = bound_of(window);
    const bool may_probe = !probed_ && cuts_.feasible_periods && is_worth_raising();
    LabelQuery query = relaxed_query_at(window.hi, may_probe ? std::min(most, tuning_.hard_search) : most);
    query.cutoff = cutoff_at(base);
    const LabelAnswer answer = search_relaxed(bound, query);
    if (!answer.finished && query.label_budget < most) {
      probed_ = true;
      if (tuning_.wide_beam > 0) raise_to_any_chain(window.multipliers);
      return queue_.push(std::move(window));
    }
    if (!answer.finished) return look_at(window, bound);
    if (!answer.found) return;
    window.bound = std::max(window.bound, base + answer.value);
    window.relaxed = true;
    queue_.push(std::move(window));
  }

  [[nodiscard]] std::int64_t longest_of_interest() const { return (best_ - 1) / (program_.microbatches - 1); }

  [[nodiscard]] static std::int64_t further_than(std::int64_t period, double share) {
    return static_cast<std::int64_t>(static_cast<double>(period) * (1 + share)) + 1;
  }

  [[nodiscard]] static std::int64_t nearer_than(std::int64_t period, double share) {
    return static_cast<std::int64_t>(static_cast<double>(period) / (1 + share));
  }

  // With a small budget no step would get far.
  [[nodiscard]] bool is_worth_raising() const {
    return cuts_.relaxed_frontier && best_ != kNever && program_.microbatches > 1 &&
           limits_.label_budget / tuning_.rise_share >= tuning_.hard_search;
  }

  // Rules out periods in growing steps, as long as that takes few labels.
  void raise(const std::vector<double>& multipliers) {
    std::int64_t limit = longest_of_interest();
    for (double step = tuning_.first_rise; step >= tuning_.last_rise && ruled_out_ < limit;) {
      const std::int64_t period = std::min(limit, further_than(ruled_out_, step));
      if (rules_out(period, multipliers, Question::kChainInTime)) {
        step *= 2;
      } else {
        limit = period - 1;
        step /= 4;
      }
    }
  }

  // Rules out the periods below those that a beam search finds chains for. Where it misses some, growing steps lead
  // back.
  void raise_to_any_chain(const std::vector<double>& multipliers) {
    const std::int64_t open = shortest_found(multipliers);
    std::int64_t period = open > longest_of_interest() ? open - 1 : nearer_than(open, tuning_.last_rise);
    for (double step = 2 * tuning_.last_rise; period > ruled_out_; step *= 2) {
      if (rules_out(period, multipliers, Question::kAnyChain)) return;
      period = nearer_than(period, step);
    }
  }

  // Of those of interest, to about the last step; one more than they where none is found.
  std::int64_t shortest_found(const std::vector<double>& multipliers) {
    std::int64_t none = ruled_out_;
    std::int64_t open = longest_of_interest() + 1;
    while (further_than(none, tuning_.last_rise) < open) {
      const std::int64_t middle = none + (open - none) / 2;
      (holds_some_chain(middle, multipliers) ? open : none) = middle;
    }
    return open;
  }

  // Whether a beam search finds a chain, however slow, that memory and links hold at the period.
  bool holds_some_chain(std::int64_t period, const std::vector<double>& multipliers) {
    const CompletionBound bound(program_, fastest_, period, multipliers, 0, kNoCompletion);
    if (bound.root() == kNoCompletion) return false;
    LabelQuery query = relaxed_query_at(period, kAnyTime);
    query.feasibility_only = true;
    query.beam = tuning_.wide_beam;
    return pass_quickly(bound, query).found;
  }

  // Whether no chain is in time, or no chain at all, that the period allows: it then rules out all up to itself. What a
  // period's capacity allows, memory and links may still rule out.
  bool rules_out(std::int64_t period, const std::vector<double>& multipliers, Question question) {
    const bool feasibility_only = question == Question::kAnyChain;
    const CompletionBound bound(program_, fastest_, period, multipliers, feasibility_only ? 0 : tuning_.next_ascent,
                                kNoCompletion);
    const std::int64_t left = limits_.label_budget - result_.labels;
    LabelQuery query = relaxed_query_at(
        period, feasibility_only ? left / 2 : std::min(left / tuning_.rise_share, tuning_.hard_search));
    query.feasibility_only = feasibility_only;
    if (!feasibility_only) query.cutoff = cutoff_at((program_.microbatches - 1) * (ruled_out_ + 1));
    const LabelAnswer answer = search_relaxed(bound, query);
    if (!answer.finished || answer.found) return false;
    ruled_out_ = period;
    return true;
  }

  [[nodiscard]] std::int64_t cutoff_at(std::int64_t base) const {
    return best_ == kNever ? kAnyTime : best_ - 1 - base;
  }

  void count(const LabelAnswer& answer) {
    result_.states += answer.states;
    result_.cuts += answer.cuts;
  }

  // At falling periods.
  void solve_window(const Window& window) {
    ++result_.windows;
    const std::int64_t base = (program_.microbatches - 1) * window.lo;
    std::vector<double> multipliers = window.multipliers;
    for (std::int64_t hi = window.hi; hi >= window.lo;) {
      const CompletionBound bound(program_, fastest_, hi, multipliers, tuning_.window_ascent, kNoCompletion);
      if (bound.root() == kNoCompletion) return;
      multipliers = bound.multipliers();
      LabelQuery query;
      query.period = hi;
      query.cutoff = cutoff_at(base);
      if (static_cast<double>(query.cutoff) + 1.0 < bound.root()) return;
      query.label_budget = limits_.label_budget - result_.labels;
      if (query.label_budget <= 0) return give_up(window);
      LabelAnswer answer = search_labels(ground_, bound, query);
      result_.labels += answer.labels;
      count(answer);
      std::int64_t period = hi;
      if (answer.chain) period = keep(std::move(*answer.chain));
      if (!answer.finished) {
        if (looks_for_incumbents()) beam_search(bound, hi, base, true);
        return give_up(window);
      }
      if (!answer.found) return;
      // Chains at periods up to hi cost at least `value`, so only smaller periods can do better.
      if (program_.microbatches == 1) return;
      hi = std::min(period - 1, (best_ - 1 - answer.value) / (program_.microbatches - 1));
    }
  }

  [[nodiscard]] CompletionBound bound_of(const Window& window) const {
    return {program_, fastest_, window.hi, window.multipliers, tuning_.window_ascent, kNoCompletion};
  }

  // A window that is not solved: the beam search may still find something in it.
  void look_at(const Window& window, const CompletionBound& bound) {
    if (bound.root() == kNoCompletion) return;
    if (looks_for_incumbents()) beam_search(bound, window.hi, (program_.microbatches - 1) * window.lo, true);
    give_up(window);
  }

  // The beam search at one period, for chains whose periods take at least `base`.
  void beam_search(const CompletionBound& bound, std::int64_t period, std::int64_t base, bool mixed) {
    LabelQuery query;
    query.period = period;
    query.cutoff = cutoff_at(base);
    query.beam = tuning_.beam;
    query.mixed = mixed;
    LabelAnswer answer = pass_quickly(bound, query);
    if (answer.chain) keep(std::move(*answer.chain));
  }

  LabelAnswer pass_quickly(const CompletionBound& bound, const LabelQuery& query) {
    LabelAnswer answer = search_labels(ground_, bound, query);
    result_.beam_labels += answer.labels;
    count(answer);
    return answer;
  }

  void give_up(const Window& window) {
    result_.finished = false;
    unfinished_ = std::min(unfinished_, window.bound);
  }

  // Evaluates a chain and keeps it among the best; returns its period.
  std::int64_t keep(Chain chain) {
    const bool feasible = evaluate(program_, chain);
    TANGRAM_ASSERT(feasible);
    if (!feasible) return 0;
    best_ = std::min(best_, of_interest(chain.time, limits_.accepted_gap));
    const std::int64_t period = chain.period;
    if (chain.time >= limits_.incumbent) return period;
    const bool known = std::any_of(result_.chains.begin(), result_.chains.end(), [&](const Chain& other) {
      return !earlier(chain, other) && !earlier(other, chain);
    });
    if (!known) {
      result_.chains.push_back(std::move(chain));
      std::sort(result_.chains.begin(), result_.chains.end(), earlier);
      if (result_.chains.size() > static_cast<std::size_t>(limits_.keep)) result_.chains.pop_back();
    }
    return period;
  }

  void look_near_best(std::int64_t lowest, std::int64_t highest) {
    if (!limits_.timed || !cuts_.timetable_pool || result_.chains.empty() || tuning_.beam <= 0) return;
    PoolQuery query{lowest, highest, limits_.timed_incumbent, tuning_.beam, result_.chains};
    query.starts = static_cast<std::size_t>(tuning_.local_starts);
    SolutionPool near = fill_pool(ground_, fastest_, query);
    result_.beam_labels += near.labels;
    for (const TimedChain& timed : near.timed) {
      Chain chain = timed.chain;
      if (evaluate(program_, chain) && chain.time < best_) keep(std::move(chain));
    }
    result_.timed = std::move(near.timed);
  }

  // Proves nothing. Few chains of so small programs are missed by a wide beam, and what local search makes of one may
  // be faster than its own least time says.
  [[nodiscard]] ProgramResult look_for_timetables(std::int64_t lowest, std::int64_t highest) {
    PoolQuery query{lowest, highest, limits_.timed_incumbent, tuning_.wide_beam, {}};
    query.starts = static_cast<std::size_t>(tuning_.local_starts_alone);
    query.least_time_share = tuning_.start_above_alone;
    query.slowest = limits_.incumbent;
    SolutionPool near = fill_pool(ground_, fastest_, query);
    result_.beam_labels = near.labels;
    result_.timed = std::move(near.timed);
    result_.finished = false;
    result_.bound = 0;
    result_.frontier_plans = frontiers_.made();
    return std::move(result_);
  }

  const Program& program_;
  const ProgramLimits limits_;
  const SolverTuning& tuning_ = limits_.tuning;
  const SolverCuts& cuts_ = limits_.tuning.cuts;
  const FastestPlans fastest_;
  Frontiers frontiers_;
  const EndCosts ends_;
  const LabelGround ground_{program_, frontiers_, ends_};
  std::int64_t best_;  // only times below it are of interest
  std::int64_t unfinished_ = kNever;
  std::int64_t ruled_out_ = 0;  // no chain of interest has a period up to here
  bool probed_ = false;
  std::int64_t next_order_ = 0;
  std::priority_queue<Window> queue_;
  ProgramResult result_;
};

}  // namespace

bool earlier(const Chain& a, const Chain& b) {
  if (a.time != b.time) return a.time < b.time;
  if (a.stages.size() != b.stages.size()) return a.stages.size() < b.stages.size();
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    const auto ka = std::tuple(a.stages[s].last, a.stages[s].option, a.stages[s].candidate.source);
    const auto kb = std::tuple(b.stages[s].last, b.stages[s].option, b.stages[s].candidate.source);
    if (ka != kb) return ka < kb;
  }
  return false;
}

ProgramResult search_periods(const Program& program, const ProgramLimits& limits) {
  return PeriodSearch(program, limits).run();
}

}  // namespace tangram::chain
