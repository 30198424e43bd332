// One pipeline, event by event. Goes in: its stages. Comes out: when each stage part finished its last backward.
// Pipelines meet only at the optimizer's barrier, so each runs by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "order.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

class PipelineRun {
 public:
  /// Events are appended to `events` unless it is null. Both must outlive the run.
  PipelineRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events);

  /// False: some executor waits for what will never come.
  [[nodiscard]] bool run();

  /// The end of all backward work, weight gradients included.
  [[nodiscard]] Nanoseconds last_backward(std::size_t stage) const;
  [[nodiscard]] std::int64_t max_in_flight(std::size_t stage) const;

 private:
  struct Executor {
    std::size_t stage = 0;
    std::size_t part = 0;
    bool running = false;
    bool sending = false;   // waits until the output of its last pass, which was forward, has arrived
    Pass pass;              // the one that runs, or ran last
    std::int64_t next = 0;  // index into its stage's order
    std::int64_t forwards_begun = 0;
    std::int64_t weight_gradients = 0;  // finished, kZeroBubble
    std::int64_t released = 0;          // microbatches whose activations are no longer needed
    std::int64_t max_in_flight = 0;
    Nanoseconds last_backward;
  };
  struct Finished {
    std::int64_t forwards = 0;
    std::int64_t backwards = 0;
  };
  // Passes of a chunk finish in the order of the microbatches and a link is first in, first out with constant latency:
  // what a chunk has received is always a prefix of the microbatches, and a count says all.
  struct ChunkState {
    std::int64_t activations = 0;  // received
    std::int64_t gradients = 0;    // received
    std::int64_t sent_activations = 0;
    std::int64_t sent_gradients = 0;
  };
  // The boundary after a stage, used by all its chunks.
  struct Link {
    Nanoseconds forward_free;
    Nanoseconds backward_free;
  };
  enum class EventType : std::uint8_t { kPassEnds, kActivationArrives, kGradientArrives };
  struct Pending {
    Nanoseconds time;
    std::int64_t serial = 0;  // first come, first served among equal times
    EventType what = EventType::kPassEnds;
    std::size_t index = 0;  // executor, or chunk by its place in the model
    bool operator>(const Pending& other) const {
      return time != other.time ? time > other.time : serial > other.serial;
    }
  };

  void schedule(Nanoseconds time, EventType what, std::size_t index);
  void happen(const Pending& now);
  void start_next_passes(std::size_t stage, Nanoseconds now);
  void start_next_pass(std::size_t executor, Nanoseconds now);
  [[nodiscard]] std::optional<Pass> next_pass(std::size_t executor) const;
  [[nodiscard]] bool has_input(std::size_t executor, const Pass& pass) const;
  [[nodiscard]] bool is_full(const Executor& executor) const;
  void end_pass(std::size_t executor, Nanoseconds now);
  void receive_activation(std::size_t place);
  void send_activation(std::size_t stage, std::size_t chunk, Nanoseconds now);
  void send_gradient(std::size_t stage, std::size_t chunk, Nanoseconds now);
  void record(EventKind kind, std::size_t stage, std::size_t part, std::int64_t microbatch, std::size_t chunk,
              Nanoseconds start, Nanoseconds end);

  [[nodiscard]] bool waits_for_activations() const { return pipeline_->transfers == Transfers::kForwardBlocking; }
  [[nodiscard]] bool zero_bubble() const { return pipeline_->kind == ScheduleKind::kZeroBubble; }
  [[nodiscard]] std::size_t parts(std::size_t stage) const { return pipeline_->stages[stage].parts.size(); }
  [[nodiscard]] std::size_t place(std::size_t stage, std::size_t chunk) const { return chunk * orders_.size() + stage; }
  [[nodiscard]] Finished& finished(std::size_t executor, std::size_t chunk) {
    return finished_[executor * chunks_ + chunk];
  }
  [[nodiscard]] const Finished& finished(std::size_t executor, std::size_t chunk) const {
    return finished_[executor * chunks_ + chunk];
  }

  const SimPipeline* pipeline_;
  int pipeline_id_;
  std::vector<Event>* events_;
  std::size_t chunks_;                       // of each stage
  std::vector<Order> orders_;                // of the stages
  std::vector<std::size_t> first_executor_;  // of the stages
  std::vector<Link> links_;                  // after the stages
  std::vector<Executor> executors_;
  std::vector<Finished> finished_;     // of each executor's chunks
  std::vector<ChunkState> places_;     // in the order of the model
  std::vector<std::size_t> to_start_;  // stages where something happened at the present time
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> queue_;
  std::int64_t serial_ = 0;
};

}  // namespace tangram::simulate
