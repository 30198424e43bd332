// Least-loss search over positive figures without derivatives. Goes in: a start, a loss and steps. Comes out: figures
// none of which, a smallest step larger or smaller, has less loss.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace tangram {

/// Compass search (Kolda, Lewis, Torczon, SIAM Review 45(3), 2003) by factors: for each step in turn, figures are
/// multiplied or divided by 1 + step, one after the other, as long as one of them lowers `loss(figures)`. Infinite
/// losses are limits. Deterministic.
template <class Loss>
[[nodiscard]] std::vector<double> compass_search(std::vector<double> best, std::span<const double> steps,
                                                 const Loss& loss) {
  constexpr double kLeastGain = 1e-12;
  double least = loss(std::as_const(best));
  const auto improves = [&](std::size_t figure, double factor) {
    std::vector<double> changed = best;
    changed[figure] *= factor;
    const double now = loss(std::as_const(changed));
    if (!(now < least - kLeastGain)) return false;
    best = std::move(changed);
    least = now;
    return true;
  };
  for (const double step : steps) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t figure = 0; figure < best.size(); ++figure) {
        moved = improves(figure, 1 + step) || improves(figure, 1 / (1 + step)) || moved;
      }
    }
  }
  return best;
}

}  // namespace tangram
