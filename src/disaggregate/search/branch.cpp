#include "branch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../ledger.hpp"
#include "../prices/priced.hpp"

namespace tangram::disaggregate {

namespace {

class Branching {
 public:
  Branching(const Resources& resources, const BranchQuery& query, Solution& best)
      : resources_(resources), query_(query), best_(best), ledger_(resources), priced_(resources) {
    priced_.set_prices(query.prices);
    const int kernels = resources.problem().kernel_count();
    rest_.assign(static_cast<std::size_t>(kernels) + 1, 0);
    for (int k = kernels - 1; k >= 0; --k) {
      double least = kNever;
      for (int c = 0; c < priced_.classes(); ++c) least = std::min(least, priced_.kernel(k, c));
      at(rest_, k) = at(rest_, k + 1) + least;
    }
  }

  bool run() {
    visit(0);
    return nodes_ <= query_.most_nodes;
  }

 private:
  void visit(int kernel) {
    if (++nodes_ > query_.most_nodes || is_hopeless(kernel)) return;
    if (kernel == resources_.problem().kernel_count()) return try_placement();
    std::vector<std::pair<double, int>> order;
    for (int c = 0; c < priced_.classes(); ++c) {
      if (!std::isinf(priced_.kernel(kernel, c))) order.emplace_back(priced_.kernel(kernel, c), c);
    }
    std::ranges::sort(order);
    const std::vector<double> rows = ledger_.rows();
    for (const auto& [cost, on] : order) {
      ledger_.put(kernel, on);
      visit(kernel + 1);
      ledger_.put(kernel, Ledger::kNowhere);
      ledger_.restore(rows);
    }
  }

  [[nodiscard]] bool is_hopeless(int kernel) const {
    constexpr double kRounding = 1e-12;
    if (ledger_.overdraft() > kRounding) return true;
    const double most = best_.value * (1 - kRounding);
    if (query_.objective == Objective::kThroughput && ledger_.period() >= most) return true;
    return ledger_.priced(query_.prices) + at(rest_, kernel) - query_.credit >= most;
  }

  void try_placement() {
    const Problem& problem = resources_.problem();
    Usage usage = usage_of(problem, ledger_.placement());
    const double value = value_of(problem, usage, query_.objective);
    if (!usage.fits || value >= best_.value) return;
    best_.found = true;
    best_.placement = ledger_.placement();
    best_.usage = std::move(usage);
    best_.value = value;
  }

  const Resources& resources_;
  const BranchQuery& query_;
  Solution& best_;
  Ledger ledger_;
  PricedProblem priced_;
  std::vector<double> rest_;  // by kernel: the least that it and those behind it cost
  std::int64_t nodes_ = 0;
};

}  // namespace

bool branch(const Resources& resources, const BranchQuery& query, Solution& best) {
  return Branching(resources, query, best).run();
}

}  // namespace tangram::disaggregate
