#include "window_queue.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>

namespace tangram::chain {

Window WindowQueue::pop() {
  Window window = queue_.top();
  queue_.pop();
  return window;
}

void WindowQueue::push(std::int64_t lo, std::int64_t hi, std::vector<double> multipliers, int ascent) {
  hi = std::min(hi, incumbent_.last_period_of_interest());
  if (lo <= hi) push(window_of(lo, hi, std::move(multipliers), ascent));
}

void WindowQueue::push(std::optional<Window> window) {
  if (!window) {
    ++ruled_out_;
    return;
  }
  window->order = next_order_++;
  queue_.push(std::move(*window));
}

// None: periods alone may take too long, or the bound say so.
std::optional<Window> WindowQueue::window_of(std::int64_t lo, std::int64_t hi, std::vector<double> multipliers,
                                             int ascent) const {
  const std::int64_t base = all_periods(program_, lo);
  const std::int64_t best = incumbent_.best();
  const double enough = incumbent_.exists() ? static_cast<double>(best - base) + 2.0 : kNoCompletion;
  const CompletionBound bound(program_, fastest_, hi, std::move(multipliers), ascent, enough,
                              CompletionBound::Extent::kRoot);
  const std::int64_t rest = bound.least_end(incumbent_.exists() ? best - base : kNever);
  if (rest == kNever || base + rest >= best) return std::nullopt;
  return Window{lo, hi, base + rest, bound.multipliers(), 0, false};
}

// Both halves at once, as nothing is found between them. A thread that waits for the other half does not begin another
// program.
void WindowQueue::split(const Window& window) {
  const double middle = std::sqrt(static_cast<double>(window.lo) * static_cast<double>(window.hi));
  const std::int64_t cut = std::clamp(static_cast<std::int64_t>(middle), window.lo, window.hi - 1);
  const std::int64_t end = std::min(window.hi, incumbent_.last_period_of_interest());
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  if (window.lo <= end) ranges.emplace_back(window.lo, std::min(cut, end));
  if (cut < end) ranges.emplace_back(cut + 1, end);
  std::vector<std::optional<Window>> halves(ranges.size());
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(std::size_t{0}, ranges.size(), [&](std::size_t i) {
      halves[i] = window_of(ranges[i].first, ranges[i].second, window.multipliers, tuning().next_ascent);
    });
  });
  for (std::optional<Window>& half : halves) push(std::move(half));
}

bool WindowQueue::is_narrow(const Window& window) const {
  const std::int64_t reference = incumbent_.exists() ? incumbent_.best() : window.bound;
  const auto apart = static_cast<double>(all_periods(program_, window.hi - window.lo));
  return window.hi - window.lo <= 1 || apart <= tuning().window_share * static_cast<double>(reference);
}

}  // namespace tangram::chain
