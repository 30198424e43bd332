#include "solution_pool.hpp"

#include <algorithm>
#include <utility>

#include "../periods.hpp"
#include "tangram/chain/local_search.hpp"
#include "tangram/chain/timetable.hpp"

namespace tangram::chain {

namespace {

class Explorer {
 public:
  Explorer(const LabelGround& ground, const FastestPlans& fastest, const PoolQuery& query)
      : ground_(ground), program_(ground.program), fastest_(fastest), tuning_(fastest.tuning()), query_(query) {}

  SolutionPool run() {
    for (const Chain& chain : query_.chains) note(chain);
    look_around();
    std::int64_t incumbent = query_.incumbent;
    for (TimedChain& start : starts_) {
      const auto least = static_cast<double>(least_time(program_, start.chain));
      if (least >= query_.least_time_share * static_cast<double>(incumbent)) continue;
      result_.timed.push_back(local_search(program_, ground_.frontiers, std::move(start.chain), Changes::kFew,
                                           tuning_.local_effort, tuning_, ground_.deadline));
      incumbent = std::min(incumbent, result_.timed.back().time);
    }
    std::ranges::stable_sort(result_.timed, {}, &TimedChain::time);
    return std::move(result_);
  }

 private:
  // Beam searches over a geometric grid of periods, which tell all chains that they come by.
  void look_around() {
    const std::int64_t any_period = this->reach();
    std::vector<double> multipliers;
    for (std::int64_t lo = query_.shortest_period; lo <= query_.longest_period && !ground_.deadline.has_passed();) {
      const std::int64_t end = program_.microbatches == 1 ? query_.longest_period : interval_end(lo, tuning_);
      const std::int64_t hi = std::min(query_.longest_period, end);
      const std::int64_t base = (program_.microbatches - 1) * lo;
      const std::int64_t reach = std::min(any_period, reach_at(lo));
      if (base >= reach) return;
      const CompletionBound bound(program_, fastest_, hi, multipliers, ascent_from(multipliers, tuning_),
                                  kNoCompletion);
      if (bound.root() != kNoCompletion) multipliers = bound.multipliers();
      if (bound.root() <= static_cast<double>(reach - base)) look_at(bound, hi, reach - base);
      lo = hi + 1;
    }
  }

  // A timetable is below its closed form by no more than what fills and drains the pipeline.
  [[nodiscard]] std::int64_t reach() const {
    if (query_.chains.empty()) return query_.slowest;
    const Chain& front = query_.chains.front();
    const auto flow = static_cast<double>(program_.microbatches * front.period);
    const auto best = static_cast<double>(front.time);
    const double further = std::min(tuning_.timetable_reach * best, query_.most_of_fill * std::max(0.0, best - flow));
    return std::min(query_.slowest, static_cast<std::int64_t>(best + further));
  }

  // Where no chain of the program is known: a timetable takes at least the flow of all microbatches, and is below its
  // closed form by no more than a share of the rest.
  [[nodiscard]] std::int64_t reach_at(std::int64_t period) const {
    if (!query_.chains.empty() || query_.incumbent == kNever) return kNever;
    const auto flow = static_cast<double>(program_.microbatches * period);
    const auto slowest =
        (static_cast<double>(query_.incumbent) - query_.most_of_fill * flow) / (1 - query_.most_of_fill);
    return slowest < static_cast<double>(kLongestPeriod) ? static_cast<std::int64_t>(slowest) : kNever;
  }

  void look_at(const CompletionBound& bound, std::int64_t period, std::int64_t cutoff) {
    LabelQuery query;
    query.period = period;
    query.cutoff = cutoff;
    query.beam = query_.beam;
    query.mixed = query_.mixed;
    query.all = true;
    LabelAnswer answer = search_labels(ground_, bound, query);
    result_.labels += answer.labels;
    for (Chain& chain : answer.chains) {
      if (evaluate(program_, chain)) note(chain);
    }
  }

  // Among the fastest by timetable, unless another takes as long: it is the same but for names.
  void note(const Chain& chain) {
    const std::int64_t slowest = starts_.size() == query_.starts ? starts_.back().time : INT64_MAX;
    if (least_time(program_, chain) >= slowest) return;
    const std::int64_t time = timetable(program_, chain, slowest);
    if (time >= slowest) return;
    const auto place = std::ranges::lower_bound(starts_, time, {}, &TimedChain::time);
    if (place != starts_.end() && place->time == time) return;
    starts_.insert(place, {chain, time});
    if (starts_.size() > query_.starts) starts_.pop_back();
  }

  const LabelGround& ground_;
  const Program& program_;
  const FastestPlans& fastest_;
  const SolverTuning& tuning_;
  const PoolQuery& query_;
  std::vector<TimedChain> starts_;  // the fastest first
  SolutionPool result_;
};

}  // namespace

SolutionPool fill_pool(const LabelGround& ground, const FastestPlans& fastest, const PoolQuery& query) {
  return Explorer(ground, fastest, query).run();
}

}  // namespace tangram::chain
