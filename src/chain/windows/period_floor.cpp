#include "period_floor.hpp"

#include <algorithm>

namespace tangram::chain {

namespace {

std::int64_t further_than(std::int64_t period, double share) {
  return static_cast<std::int64_t>(static_cast<double>(period) * (1 + share)) + 1;
}

std::int64_t nearer_than(std::int64_t period, double share) {
  return static_cast<std::int64_t>(static_cast<double>(period) / (1 + share));
}

}  // namespace

bool PeriodFloor::is_worth_raising() const {
  return tuning().cuts.relaxed_frontier && incumbent_.exists() && program_.microbatches > 1 &&
         limits_.label_budget / tuning().rise_share >= tuning().hard_search;
}

void PeriodFloor::raise(const std::vector<double>& multipliers) {
  std::int64_t limit = incumbent_.longest_period();
  for (double step = tuning().first_rise; step >= tuning().last_rise && ruled_out_ < limit;) {
    const std::int64_t period = std::min(limit, further_than(ruled_out_, step));
    if (rules_out(period, multipliers, Question::kChainInTime)) {
      step *= 2;
    } else {
      limit = period - 1;
      step /= 4;
    }
  }
}

// Where the beam search misses some chains, growing steps lead back.
void PeriodFloor::raise_to_any_chain(const std::vector<double>& multipliers) {
  probed_ = true;
  if (tuning().wide_beam <= 0) return;
  const std::int64_t open = shortest_found(multipliers);
  std::int64_t period = open > incumbent_.longest_period() ? open - 1 : nearer_than(open, tuning().last_rise);
  for (double step = 2 * tuning().last_rise; period > ruled_out_; step *= 2) {
    if (rules_out(period, multipliers, Question::kAnyChain)) return;
    period = nearer_than(period, step);
  }
}

// Of those of interest, to about the last step; one more than they where none is found.
std::int64_t PeriodFloor::shortest_found(const std::vector<double>& multipliers) {
  std::int64_t none = ruled_out_;
  std::int64_t open = incumbent_.longest_period() + 1;
  while (further_than(none, tuning().last_rise) < open) {
    const std::int64_t middle = none + (open - none) / 2;
    (holds_some_chain(middle, multipliers) ? open : none) = middle;
  }
  return open;
}

// Whether a beam search finds a chain, however slow, that memory and links hold at the period.
bool PeriodFloor::holds_some_chain(std::int64_t period, const std::vector<double>& multipliers) {
  if (searches_.is_late()) return false;
  const CompletionBound bound(program_, fastest_, period, multipliers, 0, kNoCompletion);
  if (bound.root() == kNoCompletion) return false;
  LabelQuery query = relaxed_query_at(period, kAnyTime);
  query.feasibility_only = true;
  query.beam = tuning().wide_beam;
  return searches_.beam(bound, query).found;
}

LabelQuery PeriodFloor::query_at(std::int64_t period, Question question) const {
  const std::int64_t left = searches_.labels_left();
  if (question == Question::kAnyChain) {
    LabelQuery query = relaxed_query_at(period, left / 2);
    query.feasibility_only = true;
    return query;
  }
  LabelQuery query = relaxed_query_at(period, std::min(left / tuning().rise_share, tuning().hard_search));
  query.cutoff = incumbent_.cutoff_at(all_periods(program_, ruled_out_ + 1));
  return query;
}

// Whether no chain is in time, or no chain at all, that the period allows: it then rules out all up to itself. What a
// period's capacity allows, memory and links may still rule out.
bool PeriodFloor::rules_out(std::int64_t period, const std::vector<double>& multipliers, Question question) {
  if (searches_.is_late()) return false;
  const int ascent = question == Question::kAnyChain ? 0 : tuning().next_ascent;
  const CompletionBound bound(program_, fastest_, period, multipliers, ascent, kNoCompletion);
  const LabelAnswer answer = searches_.relaxed(bound, query_at(period, question));
  if (!answer.finished || answer.found) return false;
  ruled_out_ = period;
  return true;
}

}  // namespace tangram::chain
