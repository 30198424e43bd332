#include "beam_pass.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tangram::chain {

bool BeamPass::is_worth_it(std::int64_t bound) const {
  if (!is_on()) return false;
  if (!incumbent_.exists()) return true;
  return static_cast<double>(incumbent_.best()) > tuning().far_from_bound * static_cast<double>(bound);
}

// Mixed stages multiply the plans to look at and rarely decide: only where nothing else was found.
void BeamPass::over(std::int64_t lowest, std::int64_t highest) {
  climb(lowest, highest, false);
  if (!incumbent_.exists()) climb(lowest, highest, true);
}

void BeamPass::climb(std::int64_t lowest, std::int64_t highest, bool mixed) {
  std::vector<double> multipliers;
  for (std::int64_t lo = lowest, hi = program_.microbatches == 1 ? highest : lowest;;) {
    if (searches_.is_late()) return;
    const std::int64_t base = all_periods(program_, lo);
    if (incumbent_.exists() && base >= incumbent_.best()) return;
    const CompletionBound bound(program_, fastest_, hi, multipliers, ascent_from(multipliers, tuning()), kNoCompletion);
    if (bound.root() != kNoCompletion) multipliers = bound.multipliers();
    if (bound.root() <= static_cast<double>(incumbent_.cutoff_at(base)) + 1.0) at(bound, hi, base, mixed);
    if (hi >= highest) return;
    lo = hi + 1;
    hi = std::min(highest, interval_end(hi, tuning()));
  }
}

void BeamPass::at(const CompletionBound& bound, std::int64_t period, std::int64_t base, bool mixed) {
  LabelQuery query;
  query.period = period;
  query.cutoff = incumbent_.cutoff_at(base);
  query.beam = tuning().beam;
  query.mixed = mixed;
  LabelAnswer answer = searches_.beam(bound, query);
  if (answer.chain) incumbent_.keep(std::move(*answer.chain));
}

}  // namespace tangram::chain
