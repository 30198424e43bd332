// Event-driven pipeline schedules. Goes in: stage times and boundaries (or a launch plan). Comes out: when everything
// ran, how long the iteration took, where the time went. Shares no code with the composer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tangram/base/units.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::simulate {

/// Which pass an executor runs when.
enum class ScheduleKind : std::uint8_t {
  k1F1B,         ///< PipeDream-Flush (Narayanan et al., arXiv 2006.09503, section 3): one forward, one backward
  kInterleaved,  ///< 1F1B over several model chunks a stage, as Megatron-LM runs it (arXiv 2104.04473, section 2.2)
  kGPipe,        ///< all forward passes, then all backward passes (Huang et al., arXiv 1811.06965)
  /// Backward passes in two: input gradients as 1F1B orders them, weight gradients where the executor would wait, at
  /// the latest where its in-flight limit asks for them. Never slower than 1F1B; without latency, and with equal stages
  /// of F = B = W, it is ZB-H1 (Qi et al., arXiv 2401.10241, section 2).
  kZeroBubble,
};

/// kBlocking is of k1F1B alone: a stage waits until what it sends is taken and what it expects is there, as Megatron-LM
/// does without interleaving. Under kForwardBlocking all parts of a stage are taken from the end of a forward pass
/// until its output has arrived.
using runtime::Transfers;

/// One model chunk of a stage: chunk c of stage s holds the layers of place c * S + s in the model.
struct SimChunk {
  Nanoseconds forward;
  Nanoseconds backward;
};

/// One executor: a stage's part. Parts of a mixed stage run their own order; a stage's output is complete when all
/// parts have delivered, and its gradient synchronisation starts when all parts are through.
struct SimPart {
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds exposed_sync;
  Nanoseconds optimizer_step;
  /// Of kInterleaved, as many in all parts; they replace forward and backward. (Without an initializer g++ warns of
  /// every part written with the four times above.)
  std::vector<SimChunk> chunks = {};
  /// Of kZeroBubble: what of `backward` need not happen before the gradient leaves.
  Nanoseconds weight_gradient = Nanoseconds(0);
};

struct SimStage {
  std::vector<SimPart> parts;   ///< at least one
  std::int64_t warmup = 0;      ///< forward passes (of any chunk) before the first backward; not read by kGPipe
  Nanoseconds latency;          ///< boundary to the next stage, one way; of the last stage: to the first (kInterleaved)
  Nanoseconds occupancy;        ///< the link is busy this long per transfer and direction (full duplex), <= latency
  std::int64_t deferrable = 0;  ///< of kZeroBubble: microbatches held beyond warmup + 1, their weight gradients put off
};

/// Encoders on the GPUs of a stage: passes of the slowest lane in one round.
struct SimEncoders {
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds exposed_sync;
  Nanoseconds optimizer_step;
};

/// Turns of encoders and language model, of k1F1B alone. In each round all encoders run forward, what they made is
/// gathered, the pipeline runs its microbatches of the round, its gradients are broadcast once the first stage is
/// through, and the encoders run backward.
struct SimTurns {
  std::int64_t rounds = 1;  ///< divides the microbatches
  Nanoseconds gather;
  Nanoseconds broadcast;
  std::vector<SimEncoders> encoders;  ///< on each stage, which has one part
};

/// Under 1F1B and kZeroBubble no stage warms up longer than the one before it.
struct SimPipeline {
  std::vector<SimStage> stages;
  std::int64_t microbatches = 1;
  ScheduleKind kind = ScheduleKind::k1F1B;
  std::int64_t group = 0;  ///< of kInterleaved: microbatches that pass a chunk in a row; 0: as many as stages
  Transfers transfers = Transfers::kOverlapped;
  std::optional<SimTurns> turns = {};
};

/// Model chunks of each stage.
[[nodiscard]] std::int64_t chunks_of(const SimPipeline& pipeline);

/// Microbatches that pass a chunk in a row; the last group may be smaller.
[[nodiscard]] std::int64_t group_of(const SimPipeline& pipeline);

/// The pipeline with the warm-ups of the papers and of Megatron-LM, for S stages, s = 0..S-1:
///   k1F1B, and kInterleaved with one chunk   S - 1 - s
///   kInterleaved, v > 1 chunks, groups of G  2 (S - 1 - s) + (v - 1) G
///   kGPipe                                   M
///   kZeroBubble                              S - 1 - s, and s weight gradients put off: all stages hold up to S
[[nodiscard]] SimPipeline with_classic_warmups(SimPipeline pipeline);

/// Whether Megatron-LM takes the groups of microbatches. The simulator takes smaller ones as well, where no stage then
/// waits for itself (`Result::deadlock`).
using runtime::interleaving_refusal;

struct Schedule {
  std::vector<SimPipeline> pipelines;
};

enum class EventKind : std::uint8_t {
  kForward,
  kBackward,
  kWeightGradient,  ///< only of kZeroBubble, whose kBackward is the input gradient alone
  kSendActivation,
  kSendGradient,
  kGradientSync,
  kOptimizer,
  kEncoderForward,  ///< of colocated encoders; `microbatch`: the round
  kEncoderBackward
};

struct Event {
  EventKind kind = EventKind::kForward;
  int pipeline = 0;
  int stage = 0;
  int part = 0;
  std::int64_t microbatch = 0;
  Nanoseconds start;
  Nanoseconds end;
  int chunk = 0;  ///< of the executor that computes or sends
};

struct StageUse {
  int pipeline = 0;
  int stage = 0;
  Nanoseconds busy;          ///< of its slowest part
  Nanoseconds exposed_sync;  ///< of that part
  Nanoseconds idle;          ///< the rest, until the optimizer starts
  /// Counted: microbatches whose forward pass has begun and whose activations are still needed, each chunk's by itself;
  /// under kZeroBubble until the weight gradient is there.
  std::int64_t max_in_flight = 0;
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
/// all synchronisations have ended (the gradient norm is a barrier). With colocated encoders it starts when the whole
/// pipeline is through. O(n log p) for n microbatch passes and p parts.
[[nodiscard]] Result simulate(const Schedule& schedule, bool record = false);

/// The written times, chunks, warm-ups and boundaries, taken as they are, with the transfers of the plan's runtime.
/// `transfers`: not kBlocking where the plan's chunks are interleaved or its weight gradients put off.
[[nodiscard]] Schedule schedule_of(const plan::LaunchPlan& plan);
[[nodiscard]] Schedule schedule_of(const plan::LaunchPlan& plan, Transfers transfers);

/// Dollars per hour of the GPUs that the plan uses; 0 when any of their prices is unknown.
[[nodiscard]] double dollars_per_hour(const plan::LaunchPlan& plan);

/// Fills plan.predicted from a simulation of it (iteration, tokens/s, MFU, cost, bottleneck, bubble, breakdown).
/// closed_form is left as it is. `fleet_peak`: dense peak of all GPUs of the fleet in the job's precision; 0: unknown,
/// mfu_fleet is left as it is. Times of the breakdown are those of the bottleneck: the stage that computes longest.
void predict(plan::LaunchPlan& plan, const Result& result, FlopsPerSecond fleet_peak);

/// The same, beside the plan.
[[nodiscard]] plan::Predicted predicted_by(const plan::LaunchPlan& plan, const Result& result,
                                           FlopsPerSecond fleet_peak);

/// Of these, what follows from the time of an iteration: tokens/s, MFU, cost. All 0 where the time is.
void set_rates(const plan::LaunchPlan& plan, Nanoseconds iteration, FlopsPerSecond fleet_peak,
               plan::Predicted& predicted);

/// Predictions of the plan that its simulation does not give: codes "simulation-differs" and, of what follows from the
/// written iteration, "prediction-differs". mfu_fleet is compared where `fleet_peak` is known. A plan of more than ten
/// million passes is not simulated, and its iteration taken as written. The plan's references must lead somewhere.
[[nodiscard]] std::vector<plan::Violation> differences(const plan::LaunchPlan& plan,
                                                       FlopsPerSecond fleet_peak = FlopsPerSecond(0));

/// Chrome trace event format (opens in Perfetto): one process per pipeline, one thread per stage part, transfers as
/// asynchronous events between them. Microseconds with three digits, so that no nanosecond is lost.
[[nodiscard]] std::string write_trace(const plan::LaunchPlan& plan, const Result& result);

}  // namespace tangram::simulate
