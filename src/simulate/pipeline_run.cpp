#include "pipeline_run.hpp"

#include <algorithm>

#include "order.hpp"
#include "tangram/base/assert.hpp"

namespace tangram::simulate {

PipelineRun::PipelineRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events)
    : pipeline_(&pipeline), pipeline_id_(pipeline_id), events_(events) {
  TANGRAM_ASSERT(!pipeline.stages.empty());
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    TANGRAM_ASSERT(!pipeline.stages[s].parts.empty());
    StageState state;
    state.first_executor = executors_.size();
    stages_.push_back(state);
    for (std::size_t p = 0; p < parts(s); ++p) {
      Executor executor;
      executor.stage = static_cast<int>(s);
      executor.part = static_cast<int>(p);
      executors_.push_back(executor);
    }
  }
  stages_.front().activations = pipeline.microbatches;  // the input is there from the start
  stages_.back().gradients = pipeline.microbatches;     // the loss follows from the stage's own forward
}

bool PipelineRun::run() {
  for (std::size_t s = 0; s < stages_.size(); ++s) start_next_passes(s, Nanoseconds(0));
  while (!queue_.empty()) {
    const Pending now = queue_.top();
    queue_.pop();
    switch (now.what) {
      case Happening::kPassEnds: end_pass(now.index, now.time); break;
      case Happening::kActivationArrives:
        ++stages_[now.index].activations;
        start_next_passes(now.index, now.time);
        break;
      case Happening::kGradientArrives:
        ++stages_[now.index].gradients;
        start_next_passes(now.index, now.time);
        break;
    }
  }
  return std::all_of(executors_.begin(), executors_.end(),
                     [&](const Executor& e) { return e.backwards == pipeline_->microbatches; });
}

Nanoseconds PipelineRun::last_backward(std::size_t stage) const {
  Nanoseconds last;
  for (std::size_t p = 0; p < parts(stage); ++p) {
    last = std::max(last, executors_[stages_[stage].first_executor + p].last_backward);
  }
  return last;
}

std::int64_t PipelineRun::max_in_flight(std::size_t stage) const {
  std::int64_t most = 0;
  for (std::size_t p = 0; p < parts(stage); ++p) {
    most = std::max(most, executors_[stages_[stage].first_executor + p].max_in_flight);
  }
  return most;
}

void PipelineRun::schedule(Nanoseconds time, Happening what, std::size_t index) {
  queue_.push({time, serial_++, what, index});
}

void PipelineRun::start_next_passes(std::size_t stage, Nanoseconds now) {
  for (std::size_t p = 0; p < parts(stage); ++p) start_next_pass(stages_[stage].first_executor + p, now);
}

void PipelineRun::start_next_pass(std::size_t executor, Nanoseconds now) {
  Executor& self = executors_[executor];
  const auto stage = static_cast<std::size_t>(self.stage);
  if (self.running || self.next == 2 * pipeline_->microbatches) return;
  const SimStage& description = pipeline_->stages[stage];
  const Pass pass = pass_at(self.next, pipeline_->microbatches, description.warmup);
  const std::int64_t received = pass.forward ? stages_[stage].activations : stages_[stage].gradients;
  if (pass.microbatch >= received) return;

  const SimPart& times = description.parts[static_cast<std::size_t>(self.part)];
  const Nanoseconds end = now + (pass.forward ? times.forward : times.backward);
  self.running = true;
  if (pass.forward) {
    self.max_in_flight = std::max(self.max_in_flight, pass.microbatch + 1 - self.backwards);
  }
  record(pass.forward ? EventKind::kForward : EventKind::kBackward, stage, self.part, pass.microbatch, now, end);
  schedule(end, Happening::kPassEnds, executor);
}

void PipelineRun::end_pass(std::size_t executor, Nanoseconds now) {
  Executor& self = executors_[executor];
  const auto stage = static_cast<std::size_t>(self.stage);
  const bool forward = pass_at(self.next, pipeline_->microbatches, pipeline_->stages[stage].warmup).forward;
  self.running = false;
  ++self.next;
  if (forward) {
    ++self.forwards;
    send_activation(stage, now);
  } else {
    ++self.backwards;
    self.last_backward = now;
    send_gradient(stage, now);
  }
  start_next_pass(executor, now);
}

void PipelineRun::send_activation(std::size_t stage, Nanoseconds now) {
  if (stage + 1 == stages_.size()) return;
  StageState& state = stages_[stage];
  // A transfer starts when the last part has finished the microbatch.
  for (std::size_t p = 0; p < parts(stage); ++p) {
    if (executors_[state.first_executor + p].forwards <= state.sent_activations) return;
  }
  const SimStage& boundary = pipeline_->stages[stage];
  const Nanoseconds start = std::max(now, state.forward_link_free);
  state.forward_link_free = start + boundary.occupancy;
  record(EventKind::kSendActivation, stage, 0, state.sent_activations++, start, start + boundary.latency);
  schedule(start + boundary.latency, Happening::kActivationArrives, stage + 1);
}

void PipelineRun::send_gradient(std::size_t stage, Nanoseconds now) {
  if (stage == 0) return;
  StageState& state = stages_[stage];
  for (std::size_t p = 0; p < parts(stage); ++p) {
    if (executors_[state.first_executor + p].backwards <= state.sent_gradients) return;
  }
  const SimStage& boundary = pipeline_->stages[stage - 1];
  const Nanoseconds start = std::max(now, state.backward_link_free);
  state.backward_link_free = start + boundary.occupancy;
  record(EventKind::kSendGradient, stage, 0, state.sent_gradients++, start, start + boundary.latency);
  schedule(start + boundary.latency, Happening::kGradientArrives, stage - 1);
}

void PipelineRun::record(EventKind kind, std::size_t stage, int part, std::int64_t microbatch, Nanoseconds start,
                         Nanoseconds end) {
  if (events_ == nullptr) return;
  events_->push_back({kind, pipeline_id_, static_cast<int>(stage), part, microbatch, start, end});
}

}  // namespace tangram::simulate
