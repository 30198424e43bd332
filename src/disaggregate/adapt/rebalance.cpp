#include "tangram/disaggregate/rebalance.hpp"

#include <algorithm>
#include <cmath>

#include "../search/descent.hpp"
#include "tangram/disaggregate/usage.hpp"

namespace tangram::disaggregate {

namespace {

struct Move {
  int kernel = -1;
  int to = -1;
  double price = kNever;  // seconds that all resources together take more, for each second less of the period
};

// The problem as the classes' measured speeds have it.
Problem as_measured(const Problem& planned, const Placement& placement, const std::vector<double>& measured) {
  const Usage usage = usage_of(planned, placement);
  Problem scaled = planned;
  for (Kernel& kernel : scaled.kernels) {
    for (std::size_t c = 0; c < measured.size(); ++c) {
      if (usage.gpu[c] > 0) kernel.seconds[c] *= measured[c] / usage.gpu[c];
    }
  }
  return scaled;
}

}  // namespace

Placement rebalanced(const Problem& planned, Placement placement, const Rebalance& by) {
  const Problem problem = as_measured(planned, placement, by.measured);
  const Resources resources(problem);
  Ledger ledger(resources, placement);
  std::vector<double> all(static_cast<std::size_t>(resources.rows()), 1);  // of time
  std::fill(all.begin() + resources.memory_row(0), all.end(), 0);
  for (int moves = 0; moves < by.most_moves; ++moves) {
    const Score before = score_of(ledger, all);
    const std::vector<double> rows = ledger.rows();
    Move best;
    for (int k = 0; k < problem.kernel_count(); ++k) {
      const int from = at(placement, k);
      for (int c = 0; c < problem.class_count(); ++c) {
        const bool may = by.is_resident.empty() || by.is_resident(k, c) != 0;
        if (c == from || !may || std::isinf(at(at(problem.kernels, k).seconds, c))) continue;
        ledger.put(k, c);
        const Score after = score_of(ledger, all);
        const double gain = before.period - after.period;
        const bool is_allowed = after.overdraft <= before.overdraft && gain > 1e-9 * before.period;
        const double price = (after.priced - before.priced) / gain;
        if (is_allowed && price < best.price) best = {k, c, price};
      }
      ledger.put(k, from);
      ledger.restore(rows);
    }
    if (best.kernel < 0) break;
    ledger.put(best.kernel, best.to);
    at(placement, best.kernel) = best.to;
  }
  return placement;
}

}  // namespace tangram::disaggregate
