// An arrival trace served by two GPUs: one alone, both as replicas, one for prefill and one for decode, or by turns as
// a monitor says. Goes in: requests, what prefill and decode steps take. Comes out: seconds a token of every request,
// and what following the load is worth over keeping to one mode.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tangram/base/grid.hpp"

namespace tangram::disaggregate {

struct Request {
  double arrival = 0;  ///< seconds, ascending
  int prompt = 1;      ///< tokens
  int generated = 1;   ///< tokens, the first one by prefill
};

/// Seconds of a decode step by requests and context, linear in between and constant outside.
struct StepTable {
  std::vector<double> requests;  ///< ascending
  std::vector<double> contexts;  ///< ascending
  Grid<double> seconds;          ///< by requests and contexts

  [[nodiscard]] double at(double batch, double context) const;
};

struct ServingGpu {
  double prefill_seconds_per_token = 0;
  StepTable decode;
};

struct ServingModel {
  std::array<ServingGpu, 2> gpus;
  double cache_seconds_per_token = 0;  ///< of a prompt, from the GPU that prefills to the one that decodes
  int most_requests = 96;              ///< decoded together
  int most_prefill_tokens = 4096;      ///< in one step
};

enum class ServingMode : std::uint8_t {
  kOneGpu,         ///< all on GPU 0
  kReplicas,       ///< requests go where fewer wait, by the GPUs' speed
  kPrefillDecode,  ///< prefill on GPU 1, decode on GPU 0
};
inline constexpr int kServingModeCount = 3;

/// Which of two modes to be in, by the queueing ratio of a window: the mean of seconds from arrival over seconds of
/// execution, as it is known of prefills that ended in the window or wait at its end.
struct MonitorRule {
  ServingMode low_load = ServingMode::kOneGpu;
  ServingMode high_load = ServingMode::kPrefillDecode;
  double window = 0.3;    ///< seconds, from decision to decision
  double up = 1.5;        ///< from this ratio on: high load
  double down = 1.5;      ///< at most this: low load; below `up`: hysteresis
  double least_stay = 0;  ///< seconds in a mode: what is under way has to drain before the next switch
};

struct Served {
  std::vector<double> seconds_per_token;  ///< by request
  int switches = 0;

  [[nodiscard]] double mean() const;
};

/// Continuous batching: a GPU prefills what waits before it decodes the next step. O(steps + requests).
[[nodiscard]] Served serve(std::span<const Request> requests, const ServingModel& model, ServingMode mode);
[[nodiscard]] Served serve(std::span<const Request> requests, const ServingModel& model, const MonitorRule& rule);

struct Adaptation {
  std::array<double, kServingModeCount> statics{};  ///< mean seconds a token, by mode
  ServingMode best = ServingMode::kOneGpu;          ///< of these
  /// As if every window's arrivals were served as by the mode that serves them best: no switching reaches it.
  double oracle = 0;
  double monitor = 0;
  int switches = 0;
};

[[nodiscard]] Adaptation judge(std::span<const Request> requests, const ServingModel& model, const MonitorRule& rule);

}  // namespace tangram::disaggregate
