#include "descent.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "tangram/disaggregate/solve.hpp"

namespace tangram::disaggregate {

namespace {

constexpr double kAlike = 1e-12;  // relative: no more than rounding
constexpr int kMostSweeps = 8;
constexpr std::array kRuns{1, 2, 3, 4, 5, 6, 8, 10, 12, 16};  // kernels that move together

// Whether kernels [first, last) all run on a class, and neither end is there: shorter runs are tried apart.
bool may_move(const Problem& problem, const Placement& placement, int first, int last, int on) {
  if (at(placement, first) == on || at(placement, last - 1) == on) return false;
  for (int k = first; k < last; ++k) {
    if (std::isinf(at(at(problem.kernels, k).seconds, on))) return false;
  }
  return true;
}

// Tries all runs on all classes, again while that helps; `attempt` says whether it made the move.
template <class Attempt>
void sweep(const Problem& problem, const Placement& placement, Attempt attempt) {
  bool is_better = true;
  for (int i = 0; i < kMostSweeps && is_better; ++i) {
    is_better = false;
    for (const int run : kRuns) {
      for (int first = 0; first + run <= problem.kernel_count(); ++first) {
        for (int on = 0; on < problem.class_count(); ++on) {
          is_better |= may_move(problem, placement, first, first + run, on) && attempt(first, first + run, on);
        }
      }
    }
  }
}

}  // namespace

bool Score::is_better_than(const Score& other) const {
  if (std::abs(overdraft - other.overdraft) > kAlike) return overdraft < other.overdraft;
  if (std::abs(period - other.period) > kAlike * other.period) return period < other.period;
  return priced < other.priced * (1 - kAlike);
}

Score score_of(const Ledger& ledger, const std::vector<double>& prices) {
  return {ledger.overdraft(), ledger.period(), ledger.priced(prices)};
}

Placement descend(const Resources& resources, const std::vector<double>& prices, Placement placement) {
  const Problem& problem = resources.problem();
  Ledger ledger(resources, placement);
  Score best = score_of(ledger, prices);
  std::vector<double> rows;
  sweep(problem, placement, [&](int first, int last, int on) {
    rows = ledger.rows();
    for (int k = first; k < last; ++k) ledger.put(k, on);
    const Score score = score_of(ledger, prices);
    if (score.is_better_than(best)) {
      best = score;
      for (int k = first; k < last; ++k) at(placement, k) = on;
      return true;
    }
    for (int k = first; k < last; ++k) ledger.put(k, at(placement, k));
    ledger.restore(rows);
    return false;
  });
  return placement;
}

Placement descend_latency(const Problem& problem, Placement placement) {
  Usage usage = usage_of(problem, placement);
  sweep(problem, placement, [&](int first, int last, int on) {
    Placement moved = placement;
    for (int k = first; k < last; ++k) at(moved, k) = on;
    Usage of_moved = usage_of(problem, moved);
    const double before = value_of(problem, usage, Objective::kLatency);
    const double after = value_of(problem, of_moved, Objective::kLatency);
    if (usage.fits && !of_moved.fits) return false;
    if (usage.fits == of_moved.fits && after >= before * (1 - kAlike)) return false;
    usage = std::move(of_moved);
    placement = std::move(moved);
    return true;
  });
  return placement;
}

}  // namespace tangram::disaggregate
