#include "mixtures.hpp"

#include <algorithm>

#include "descent.hpp"

namespace tangram::disaggregate {

namespace {

constexpr std::size_t kMostMixed = 6;  // of the largest shares: pairs of all would take long, and the rest is little

// Kernels in the proportion of the shares.
Placement by_shares(const Relaxation& relaxation) {
  const std::size_t kernels = relaxation.placements.front().size();
  Placement placement(kernels, 0);
  std::size_t of = 0;
  double until = relaxation.shares.front();
  for (std::size_t k = 0; k < kernels; ++k) {
    const double here = (static_cast<double>(k) + 0.5) / static_cast<double>(kernels);
    while (here > until && of + 1 < relaxation.shares.size()) until += relaxation.shares[++of];
    placement[k] = relaxation.placements[of][k];
  }
  return placement;
}

Placement best_front(const Resources& resources, const std::vector<double>& prices, const Placement& front,
                     const Placement& rest) {
  Ledger ledger(resources, rest);
  Score best = score_of(ledger, prices);
  std::size_t best_length = 0;
  for (std::size_t k = 0; k < front.size(); ++k) {
    if (front[k] == rest[k]) continue;
    ledger.put(static_cast<int>(k), front[k]);
    const Score score = score_of(ledger, prices);
    if (!score.is_better_than(best)) continue;
    best = score;
    best_length = k + 1;
  }
  Placement placement = rest;
  std::copy_n(front.begin(), best_length, placement.begin());
  return placement;
}

}  // namespace

std::vector<Placement> whole_placements(const Resources& resources, const Relaxation& relaxation) {
  std::vector<Placement> found = relaxation.placements;
  if (found.empty()) return found;
  found.push_back(by_shares(relaxation));
  const std::size_t mixed = std::min(kMostMixed, relaxation.placements.size());
  for (std::size_t i = 0; i < mixed; ++i) {
    for (std::size_t j = 0; j < mixed; ++j) {
      if (i == j) continue;
      found.push_back(best_front(resources, relaxation.prices, relaxation.placements[i], relaxation.placements[j]));
    }
  }
  return found;
}

}  // namespace tangram::disaggregate
