#include "label_bounds.hpp"

#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

// Relaxed frontiers have nothing to synchronise, and a beam search is not worth the prices.
int floor_ascent_of(const LabelQuery& query, const SolverTuning& tuning) {
  return query.relaxed || query.beam > 0 ? 0 : tuning.floor_ascent;
}

}  // namespace

LabelBounds::LabelBounds(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query)
    : program_(ground.program),
      bound_(bound),
      forward_(ground.ends.forward_at(query.period, floor_ascent_of(query, bound.tuning()))),
      backward_(ground.ends.backward_at(query.period, floor_ascent_of(query, bound.tuning()))) {}

void LabelBounds::assess(Budget& budget) const {
  budget.refund = bound_.refund(budget.left);
  budget.supply = bound_.supply(budget.left);
  budget.forward = forward_.refund(budget.left);
  budget.backward = backward_.refund(budget.left);
}

double LabelBounds::least_ahead(int left, int depth, int option, int blocks, const Budget& budget) {
  left_after_ = budget.left;
  for (const Use& use : at(program_.options, option).uses) {
    at(left_after_, use.island_class) -= use.units;
  }
  const double hop = left == program_.blocks ? 0 : bound_.round_trip(left);
  return hop + bound_.knapsack().rest(left - blocks, depth + 1, left_after_);
}

void LabelBounds::report(CutYield& cuts) const {
  cuts.labels_by_time = cuts_.removed(kByTime);
  cuts.labels_by_bound = cuts_.removed(kByBound);
  cuts.labels_by_remainder = cuts_.removed(kByRemainder);
}

}  // namespace tangram::chain
