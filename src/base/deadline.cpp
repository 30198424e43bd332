#include "tangram/base/deadline.hpp"

#include <chrono>

namespace tangram {

Deadline Deadline::in(double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  // Compared in seconds: a clock's own unit may not hold the longest.
  return Deadline([begin, seconds] { return std::chrono::duration<double>(Clock::now() - begin).count() >= seconds; },
                  seconds);
}

}  // namespace tangram
