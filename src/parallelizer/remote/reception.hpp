// Who calls the planner. Goes in: connections from anybody who can reach the port. Comes out: those that greeted with
// the secret; others are hung up on, and none can make the planner wait.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sockets.hpp"
#include "wire.hpp"

namespace tangram::parallelizer {

struct Caller {
  Descriptor socket;  ///< prepared, non-blocking; nothing after the greeting was taken
  Greeting greeting;
};

class Reception {
 public:
  Reception(Listener listener, Secret secret) : listener_(std::move(listener)), secret_(std::move(secret)) {}

  [[nodiscard]] const std::vector<std::string>& addresses() const { return listener_.addresses; }
  [[nodiscard]] const Secret& secret() const { return secret_; }

  /// The next one who knows the secret, within `patience`.
  [[nodiscard]] std::optional<Caller> next(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  /// Connected; not all of its greeting has come.
  struct PendingConnection {
    Descriptor socket;
    Clock::time_point deadline;
    std::string received;
  };

  void accept_pending();
  [[nodiscard]] std::optional<Caller> greeted();
  void wait(Clock::time_point deadline) const;

  Listener listener_;
  Secret secret_;
  std::vector<PendingConnection> pending_;
};

}  // namespace tangram::parallelizer
