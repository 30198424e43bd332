// What following the load, and the measured times, is worth. Goes in: arrivals, decode and prefill as problems. Comes
// out: the two GPUs that serve (serving.hpp) in numbers, and how much of a plan's loss by wrong times moving kernels
// recovers (rebalance.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/disaggregate/problem.hpp"
#include "tangram/disaggregate/serving.hpp"

namespace tangram::disaggregate {

/// Lines "ms,prompt,generated": milliseconds since any time, ascending, and tokens; lines that begin with "#", empty
/// ones and one header do not count. All mistakes with their lines.
[[nodiscard]] Expected<std::vector<Request>> read_arrivals(const std::string& text, const std::string& file);

/// So many a second in the mean, without memory of each other (a Poisson process), all alike.
[[nodiscard]] std::vector<Request> random_arrivals(int count, double per_second, Request like, std::uint64_t seed);

/// A step of one phase at one size.
struct MeasuredStep {
  const Problem* problem = nullptr;
  int phase = 0;
  int requests = 1;
  int context = 1;    ///< tokens of a request
  double tokens = 1;  ///< that the step computes
};

/// GPU 0 is the one that decodes faster. Decode steps are a grid: each number of requests with each context. Fails
/// where they are not, where there are not two classes, and where one cannot run a step.
[[nodiscard]] Expected<ServingModel> serving_model(const MeasuredStep& prefill, std::span<const MeasuredStep> decodes,
                                                   double cache_bytes_per_token, int most_requests);

struct Recovery {
  double noise = 0;  ///< standard deviation of each operator's time on each class, relative
  double lost = 0;   ///< mean period of plans made with wrong times, over the best one: 0.1 is 10 % longer
  double left = 0;   ///< after moving kernels
};

/// Plans `draws` times with wrong times, and moves kernels by what is measured, twelve windows long. Kernels of equal
/// layers are off alike. Requires noise > 0.
[[nodiscard]] Recovery recovery_from(const Problem& problem, double noise, int draws, std::uint64_t seed);

}  // namespace tangram::disaggregate
