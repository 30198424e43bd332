// When a search has to end, by the clock. Goes in: seconds from now. Comes out: whether they are over, for whoever asks
// at coarse points. Results do not depend on a deadline that nobody saw pass, and may be any where somebody did.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace tangram {

/// Copies are of one deadline: what one of them saw pass has passed for all. Thread-safe.
class Deadline {
 public:
  /// Never passes.
  Deadline() = default;
  /// Passes so many seconds from now.
  [[nodiscard]] static Deadline in(double seconds);
  /// Passes once `passed` says so; it is asked by all threads.
  explicit Deadline(std::function<bool()> passed, double seconds = 0)
      : state_(std::make_shared<State>(std::move(passed), seconds)) {}

  /// Asks for the time. Whoever is told that the deadline has passed leaves work undone: is_missed() from then on.
  [[nodiscard]] bool has_passed() const {
    if (!state_) return false;
    if (state_->missed.load(std::memory_order_relaxed)) return true;
    if (!state_->passed()) return false;
    state_->missed.store(true, std::memory_order_relaxed);
    return true;
  }
  /// Whether work was left undone, so that results may be others in another run.
  [[nodiscard]] bool is_missed() const { return state_ && state_->missed.load(std::memory_order_relaxed); }
  /// From the beginning to the deadline; 0: there is none.
  [[nodiscard]] double seconds() const { return state_ ? state_->seconds : 0; }
  /// The same of a deadline that was missed; 0: it was not.
  [[nodiscard]] double missed_seconds() const { return is_missed() ? seconds() : 0; }

 private:
  struct State {
    State(std::function<bool()> asked, double limit) : passed(std::move(asked)), seconds(limit) {}

    const std::function<bool()> passed;
    const double seconds;
    std::atomic<bool> missed = false;
  };
  std::shared_ptr<State> state_;
};

}  // namespace tangram
