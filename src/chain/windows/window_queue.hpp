// Windows of periods that may hold a chain of interest, the smallest bound first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "../bounds/completion_bound.hpp"
#include "incumbent.hpp"

namespace tangram::chain {

struct Window {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  std::int64_t bound = 0;  ///< on the time of any chain whose period lies in it
  std::vector<double> multipliers;
  std::int64_t order = 0;
  bool relaxed = false;  ///< its bound is that of relaxed frontiers

  bool operator<(const Window& other) const {  ///< for a queue that pops the smallest bound, the earliest first
    return std::pair(bound, order) > std::pair(other.bound, other.order);
  }
};

class WindowQueue {
 public:
  WindowQueue(const Program& program, const FastestPlans& fastest, const Incumbent& incumbent)
      : program_(program), fastest_(fastest), incumbent_(incumbent) {}

  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] const Window& top() const { return queue_.top(); }
  [[nodiscard]] Window pop();
  /// What of [lo, hi] may be of interest, bounded with so many subgradient steps.
  void push(std::int64_t lo, std::int64_t hi, std::vector<double> multipliers, int ascent);
  /// A window that was popped.
  void put_back(Window window) { queue_.push(std::move(window)); }
  /// Puts both halves in the window's place.
  void split(const Window& window);
  /// Whether periods of the window lie so near that it is solved as one.
  [[nodiscard]] bool is_narrow(const Window& window) const;
  /// Windows that were ruled out when they were to be pushed.
  [[nodiscard]] std::int64_t ruled_out() const { return ruled_out_; }

 private:
  [[nodiscard]] const SolverTuning& tuning() const { return fastest_.tuning(); }
  [[nodiscard]] std::optional<Window> window_of(std::int64_t lo, std::int64_t hi, std::vector<double> multipliers,
                                                int ascent) const;
  void push(std::optional<Window> window);

  const Program& program_;
  const FastestPlans& fastest_;
  const Incumbent& incumbent_;
  std::priority_queue<Window> queue_;
  std::int64_t next_order_ = 0;
  std::int64_t ruled_out_ = 0;
};

}  // namespace tangram::chain
