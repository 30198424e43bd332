// A pipeline whose GPUs run colocated encoders in turn with it. Goes in: its stages and turns. Comes out: when each
// stage's GPUs finished their last backward pass, of either.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline_run.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

/// Rounds are alike for the language model, so that its pipeline is run once.
class TurnsRun {
 public:
  /// Of a pipeline with turns. Events are appended to `events` unless it is null. Both must outlive the run.
  TurnsRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events);

  /// False: some stage waits for what will never come.
  [[nodiscard]] bool run();

  [[nodiscard]] Nanoseconds last_backward(std::size_t stage) const { return free_[stage]; }
  [[nodiscard]] std::int64_t max_in_flight(std::size_t stage) const { return max_in_flight_[stage]; }

 private:
  void run_round(std::int64_t round);
  [[nodiscard]] Nanoseconds run_forward(std::int64_t round);
  void run_backward(std::int64_t round, std::size_t stage, Nanoseconds start);
  void record(EventKind kind, std::size_t stage, std::int64_t round, Nanoseconds start, Nanoseconds end);
  void record_pipeline(std::int64_t round, Nanoseconds start);

  const SimPipeline& pipeline_;
  const SimTurns& turns_;
  int pipeline_id_;
  std::vector<Event>* events_;
  SimPipeline of_round_;
  std::vector<Event> pipeline_events_;      // of one round, from 0
  std::vector<Nanoseconds> pipeline_ends_;  // of each stage, from 0
  std::vector<std::int64_t> max_in_flight_;
  std::vector<Nanoseconds> free_;  // of each stage's GPUs
};

}  // namespace tangram::simulate
