// Exact dominance. Goes in: candidates of one key. Comes out: those that no other beats in every component.
//
// One stage is the vector (T, F, A, o, W, n_max): T = f + w, F = f, A = T + exposed gradient sync, o = optimizer step,
// W = what of w may be put off under zero bubble, and the most microbatches in flight. Smaller, smaller, smaller,
// smaller, larger, larger is better (o is a component because the step waits for the slowest stage).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tangram::prune {

struct Candidate {
  std::int64_t T = 0;  ///< ns
  std::int64_t F = 0;  ///< ns
  std::int64_t A = 0;  ///< ns, >= T
  std::int64_t o = 0;  ///< ns
  std::int64_t n_max = 0;
  std::int32_t source = -1;  ///< index of what it stands for, in the caller's list
  std::int64_t W = 0;        ///< ns, <= T - F: weight gradients, where zero bubble puts them off

  /// A microbatch's forward pass and the gradient of its input: nobody waits for the rest. ns.
  [[nodiscard]] constexpr std::int64_t passage() const { return T - W; }
  bool operator==(const Candidate&) const = default;
};

/// True when a is at least as good as b in every component.
[[nodiscard]] constexpr bool dominates(const Candidate& a, const Candidate& b) {
  return a.T <= b.T && a.F <= b.F && a.A <= b.A && a.o <= b.o && a.W >= b.W && a.n_max >= b.n_max;
}

/// The non-dominated candidates, ordered by (T, F, A, o, -W, -n_max, source); of equal vectors the smallest source
/// stays. O(n log n + n f) for a frontier of f.
[[nodiscard]] std::vector<Candidate> pareto(std::span<const Candidate> candidates);

}  // namespace tangram::prune
