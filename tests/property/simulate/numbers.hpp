// A pipeline in plain numbers, and what is stated about its 1F1B schedule (design: iteration time, its bounds, the
// in-flight recursion).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

using Int = std::int64_t;

struct Numbers {
  std::vector<Int> f, w;  ///< forward and backward time
  std::vector<Int> c;     ///< one-way latency after the stage; the last is not used
  std::vector<Int> busy;  ///< of the link after the stage, per transfer and direction
  std::vector<Int> g, o;  ///< gradient synchronisation, optimizer step
  std::vector<Int> n;     ///< microbatches in flight
  Int M = 1;

  explicit Numbers(std::size_t stages);
  [[nodiscard]] std::size_t size() const { return f.size(); }
  [[nodiscard]] Int T(std::size_t s) const { return f[s] + w[s]; }
};

std::ostream& operator<<(std::ostream& out, const Numbers& p);

[[nodiscard]] SimPipeline pipeline_of(const Numbers& p);

[[nodiscard]] Int max_of(const std::vector<Int>& values);

/// The slowest stage or link.
[[nodiscard]] Int period(const Numbers& p);

/// Sum of T plus both ways of all boundaries: what one microbatch takes alone.
[[nodiscard]] Int latency(const Numbers& p);

/// latency + (M - 1) P
[[nodiscard]] Int form(const Numbers& p, Int P);

/// max_s (g_s - sum_{j<s} (w_j + c_j))^+
[[nodiscard]] Int exposed_tail(const Numbers& p);

/// In-flight counts that keep the period P, from the last stage to the first:
///   x_s = T_s + 2 c_s + Q_{s+1},  n_s = max(n_{s+1} + 1, ceil(x_s / P)),  Q_s = max(P (n_s - 1) + T_s, x_s).
void set_in_flight(Numbers& p, Int P);

/// max_t [ sum_{j<=t} T_j + 2 sum_{j<t} c_j + W (max_{j<=t} f + max_{j<=t} w) + (M-1-W) P ], W = min(n_t - 1, M - 1):
/// filling and draining at the pace of the slowest forward and the slowest backward. A link that is busy for a while
/// per transfer is as slow as a stage, in both directions.
[[nodiscard]] Int corrected_form(const Numbers& p, Int P);

/// What no schedule can beat, whatever its warm-up, for the end of the backward passes and of the synchronisations.
struct LowerBounds {
  Int backward = 0;  ///< max_k [ M T_k + sum_{j<k} (T_j + 2 c_j) ], sum T + 2 sum c
  Int sync = 0;      ///< max_k [ M T_k + sum_{j<k} (f_j + c_j) + g_k ]
};
[[nodiscard]] LowerBounds lower_bounds(const Numbers& p);

}  // namespace tangram::simulate
