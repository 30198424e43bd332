// Random numbers that are the same on every platform.
#pragma once

#include <cstdint>
#include <random>

namespace tangram::simulate {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  /// In [low, high], uniform up to a bias that no test cares about.
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// 0 in half of the cases.
  std::int64_t sometimes(std::int64_t high) { return pick(0, 1) == 0 ? 0 : pick(0, high); }

 private:
  std::mt19937_64 random_;  // its sequence is fixed by the standard
};

}  // namespace tangram::simulate
