// The orders in which streams may do what a schedule has.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tangram/dispatch/schedule.hpp"

namespace tangram::dispatch {

/// What one stream does at a time.
struct Step {
  enum class Kind : std::uint8_t { kUnpack, kKernel, kPack };
  Kind kind = Kind::kKernel;
  int segment = 0;
  int copy = -1;
  std::string kernel;
  std::vector<int> after;  ///< steps that end first
};

/// Steps of one pass.
[[nodiscard]] std::vector<Step> steps_of(const Schedule& schedule, int phase);

/// A step that waits for itself by way of others; -1: there is none.
[[nodiscard]] int deadlocked(const std::vector<Step>& steps);

/// Any order in which no step stands before one that it waits for. What a step picked at random needs comes first, in
/// any order, and nothing else: streams that it does not wait for fall far behind. Of steps without a deadlock.
[[nodiscard]] std::vector<int> random_order(const std::vector<Step>& steps, std::mt19937_64& random);

}  // namespace tangram::dispatch
