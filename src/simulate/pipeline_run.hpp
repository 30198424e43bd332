// One pipeline, event by event. Goes in: its stages. Comes out: when each stage part finished its last backward.
// Pipelines meet only at the optimizer's barrier, so each runs by itself.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

class PipelineRun {
 public:
  /// Events are appended to `events` unless it is null. Both must outlive the run.
  PipelineRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events);

  /// False: some executor waits for what will never come.
  [[nodiscard]] bool run();

  [[nodiscard]] Nanoseconds last_backward(std::size_t stage) const;
  [[nodiscard]] std::int64_t max_in_flight(std::size_t stage) const;

 private:
  struct Executor {
    int stage = 0;
    int part = 0;
    bool running = false;
    std::int64_t next = 0;      // index into its order of passes
    std::int64_t forwards = 0;  // finished
    std::int64_t backwards = 0;
    std::int64_t max_in_flight = 0;
    Nanoseconds last_backward;
  };
  // Passes finish in the order of the microbatches and a link is first in, first out with constant latency: what a
  // stage has received is always a prefix of the microbatches, and a count says all.
  struct StageState {
    std::size_t first_executor = 0;
    std::int64_t activations = 0;  // received
    std::int64_t gradients = 0;    // received
    std::int64_t sent_activations = 0;
    std::int64_t sent_gradients = 0;
    Nanoseconds forward_link_free;   // boundary to the next stage
    Nanoseconds backward_link_free;  // boundary to the previous stage
  };
  enum class Happening : std::uint8_t { kPassEnds, kActivationArrives, kGradientArrives };
  struct Pending {
    Nanoseconds time;
    std::int64_t serial = 0;  // first come, first served among equal times
    Happening what = Happening::kPassEnds;
    std::size_t index = 0;  // executor, or stage
    bool operator>(const Pending& other) const {
      return time != other.time ? time > other.time : serial > other.serial;
    }
  };

  void schedule(Nanoseconds time, Happening what, std::size_t index);
  void start_next_pass(std::size_t executor, Nanoseconds now);
  void start_next_passes(std::size_t stage, Nanoseconds now);
  void end_pass(std::size_t executor, Nanoseconds now);
  void send_activation(std::size_t stage, Nanoseconds now);
  void send_gradient(std::size_t stage, Nanoseconds now);
  void record(EventKind kind, std::size_t stage, int part, std::int64_t microbatch, Nanoseconds start, Nanoseconds end);
  [[nodiscard]] std::size_t parts(std::size_t stage) const { return pipeline_->stages[stage].parts.size(); }

  const SimPipeline* pipeline_;
  int pipeline_id_;
  std::vector<Event>* events_;
  std::vector<Executor> executors_;
  std::vector<StageState> stages_;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> queue_;
  std::int64_t serial_ = 0;
};

}  // namespace tangram::simulate
