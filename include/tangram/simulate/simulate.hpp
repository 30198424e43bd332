// Event-driven 1F1B. Goes in: a schedule of stage times and boundaries (or a launch plan). Comes out: when everything
// ran, how long the iteration took, where the time went. Shares no code with the composer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/base/units.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::simulate {

/// One executor: a stage's part. Parts of a mixed stage run their own 1F1B; a stage's output is complete when all
/// parts have delivered, and its gradient synchronisation starts when all parts are through.
struct SimPart {
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds exposed_sync;
  Nanoseconds optimizer_step;
};

struct SimStage {
  std::vector<SimPart> parts;  ///< at least one
  std::int64_t warmup = 0;     ///< forward passes before the first backward; never larger than the stage's before it
  Nanoseconds latency;         ///< boundary to the next stage, one way; ignored for the last
  Nanoseconds occupancy;       ///< the link is busy this long per transfer and direction (full duplex), <= latency
};

struct SimPipeline {
  std::vector<SimStage> stages;
  std::int64_t microbatches = 1;
};

struct Schedule {
  std::vector<SimPipeline> pipelines;
};

enum class EventKind : std::uint8_t { kForward, kBackward, kSendActivation, kSendGradient, kGradientSync, kOptimizer };

struct Event {
  EventKind kind = EventKind::kForward;
  int pipeline = 0;
  int stage = 0;
  int part = 0;
  std::int64_t microbatch = 0;
  Nanoseconds start;
  Nanoseconds end;
};

struct StageUse {
  int pipeline = 0;
  int stage = 0;
  Nanoseconds busy;                ///< of its slowest part
  Nanoseconds exposed_sync;        ///< of that part
  Nanoseconds idle;                ///< the rest, until the optimizer starts
  std::int64_t max_in_flight = 0;  ///< counted
};

struct Result {
  Nanoseconds iteration;         ///< last optimizer step's end
  Nanoseconds last_backward;     ///< of all pipelines
  Nanoseconds optimizer_start;   ///< all gradients are synchronised
  std::vector<StageUse> stages;  ///< pipeline by pipeline, stage by stage
  bool deadlock = false;         ///< the schedule cannot finish; all times are then 0
  std::vector<Event> events;     ///< only with record = true; ordered by (start, pipeline, stage, part, kind)
};

/// Gradient synchronisation of a stage starts when its last backward ends; the optimizer step starts everywhere when
/// all synchronisations have ended (the gradient norm is a barrier). O(n log p) for n microbatch passes and p parts.
[[nodiscard]] Result simulate(const Schedule& schedule, bool record = false);

/// The written times, warm-ups and boundaries, taken as they are.
[[nodiscard]] Schedule schedule_of(const plan::LaunchPlan& plan);

/// Fills plan.predicted from a simulation of it (iteration, tokens/s, MFU, cost, bottleneck, bubble, breakdown).
/// closed_form is left as it is. `fleet_peak`: dense peak of all GPUs of the fleet in the job's precision; 0: unknown,
/// mfu_fleet is left as it is. Times of the breakdown are those of the bottleneck: the stage that computes longest.
void predict(plan::LaunchPlan& plan, const Result& result, FlopsPerSecond fleet_peak);

/// Chrome trace event format (opens in Perfetto): one process per pipeline, one thread per stage part, transfers as
/// asynchronous events between them. Microseconds with three digits, so that no nanosecond is lost.
[[nodiscard]] std::string write_trace(const plan::LaunchPlan& plan, const Result& result);

}  // namespace tangram::simulate
