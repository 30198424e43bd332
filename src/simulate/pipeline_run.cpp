#include "pipeline_run.hpp"

#include <algorithm>

#include "tangram/base/assert.hpp"

namespace tangram::simulate {

namespace {

/// Time of one pass.
Nanoseconds duration(ScheduleKind kind, const SimPart& part, const Pass& pass) {
  if (kind == ScheduleKind::kInterleaved && !part.chunks.empty()) {
    const SimChunk& chunk = part.chunks[pass.chunk];
    return pass.kind == PassKind::kForward ? chunk.forward : chunk.backward;
  }
  if (pass.kind == PassKind::kForward) return part.forward;
  if (pass.kind == PassKind::kWeightGradient) return part.weight_gradient;
  return kind == ScheduleKind::kZeroBubble ? part.backward - part.weight_gradient : part.backward;
}

EventKind event_kind(PassKind kind) {
  switch (kind) {
    case PassKind::kForward: return EventKind::kForward;
    case PassKind::kBackward: return EventKind::kBackward;
    case PassKind::kWeightGradient: return EventKind::kWeightGradient;
  }
  return EventKind::kForward;
}

/// Zero chunks stand for one.
std::size_t chunk_count(const SimPart& part) { return std::max<std::size_t>(1, part.chunks.size()); }

}  // namespace

PipelineRun::PipelineRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events)
    : pipeline_(&pipeline),
      pipeline_id_(pipeline_id),
      events_(events),
      chunks_(static_cast<std::size_t>(chunks_of(pipeline))),
      links_(pipeline.stages.size()),
      places_(chunks_ * pipeline.stages.size()) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    TANGRAM_ASSERT(!pipeline.stages[s].parts.empty());
    orders_.emplace_back(pipeline, pipeline.stages[s]);
    first_executor_.push_back(executors_.size());
    for (std::size_t p = 0; p < parts(s); ++p) {
      const SimPart& part = pipeline.stages[s].parts[p];
      TANGRAM_ASSERT(pipeline.kind != ScheduleKind::kInterleaved || chunk_count(part) == chunks_);
      TANGRAM_ASSERT(part.weight_gradient <= part.backward);
      Executor executor;
      executor.stage = s;
      executor.part = p;
      executors_.push_back(executor);
    }
  }
  finished_.resize(executors_.size() * chunks_);
  places_.front().activations = pipeline.microbatches;  // the input is there from the start
  places_.back().gradients = pipeline.microbatches;     // the loss follows from the chunk's own forward
}

bool PipelineRun::run() {
  for (std::size_t s = 0; s < orders_.size(); ++s) start_next_passes(s, Nanoseconds(0));
  while (!queue_.empty()) {
    // What to run next is decided when all that happens at one time is known.
    const Nanoseconds now = queue_.top().time;
    while (!queue_.empty() && queue_.top().time == now) {
      const Pending pending = queue_.top();
      queue_.pop();
      happen(pending);
    }
    for (const std::size_t stage : to_start_) start_next_passes(stage, now);
    to_start_.clear();
  }
  return std::all_of(executors_.begin(), executors_.end(), [&](const Executor& e) {
    return e.next == orders_[e.stage].size() && e.released == e.forwards_begun;
  });
}

Nanoseconds PipelineRun::last_backward(std::size_t stage) const {
  Nanoseconds last;
  for (std::size_t p = 0; p < parts(stage); ++p) {
    last = std::max(last, executors_[first_executor_[stage] + p].last_backward);
  }
  return last;
}

std::int64_t PipelineRun::max_in_flight(std::size_t stage) const {
  std::int64_t most = 0;
  for (std::size_t p = 0; p < parts(stage); ++p) {
    most = std::max(most, executors_[first_executor_[stage] + p].max_in_flight);
  }
  return most;
}

void PipelineRun::schedule(Nanoseconds time, EventType what, std::size_t index) {
  queue_.push({time, serial_++, what, index});
}

void PipelineRun::happen(const Pending& now) {
  switch (now.what) {
    case EventType::kPassEnds:
      end_pass(now.index, now.time);
      to_start_.push_back(executors_[now.index].stage);
      break;
    case EventType::kActivationArrives: receive_activation(now.index); break;
    case EventType::kGradientArrives:
      ++places_[now.index].gradients;
      to_start_.push_back(now.index % orders_.size());
      break;
  }
}

void PipelineRun::start_next_passes(std::size_t stage, Nanoseconds now) {
  for (std::size_t p = 0; p < parts(stage); ++p) start_next_pass(first_executor_[stage] + p, now);
}

void PipelineRun::start_next_pass(std::size_t executor, Nanoseconds now) {
  Executor& self = executors_[executor];
  if (self.running || self.sending) return;
  const std::optional<Pass> pass = next_pass(executor);
  if (!pass) return;
  self.running = true;
  self.pass = *pass;
  if (pass->kind == PassKind::kForward) {
    ++self.forwards_begun;
    self.max_in_flight = std::max(self.max_in_flight, self.forwards_begun - self.released);
  }
  const Nanoseconds end = now + duration(pipeline_->kind, pipeline_->stages[self.stage].parts[self.part], *pass);
  record(event_kind(pass->kind), self.stage, self.part, pass->microbatch, pass->chunk, now, end);
  schedule(end, EventType::kPassEnds, executor);
}

std::optional<Pass> PipelineRun::next_pass(std::size_t executor) const {
  const Executor& self = executors_[executor];
  if (self.next < orders_[self.stage].size()) {
    const Pass pass = orders_[self.stage].at(self.next);
    if (has_input(executor, pass) && !(pass.kind == PassKind::kForward && is_full(self))) return pass;
  }
  if (zero_bubble() && self.weight_gradients < finished(executor, 0).backwards)
    return Pass{PassKind::kWeightGradient, self.weight_gradients, 0};
  return std::nullopt;
}

bool PipelineRun::has_input(std::size_t executor, const Pass& pass) const {
  const ChunkState& state = places_[place(executors_[executor].stage, pass.chunk)];
  if (pass.kind == PassKind::kForward) return pass.microbatch < state.activations;
  return pass.microbatch < state.gradients && pass.microbatch < finished(executor, pass.chunk).forwards;
}

// Another forward pass would hold more than the stage may; some weight gradient must come first.
bool PipelineRun::is_full(const Executor& executor) const {
  if (!zero_bubble()) return false;
  const SimStage& stage = pipeline_->stages[executor.stage];
  return executor.forwards_begun - executor.released > stage.warmup + stage.deferrable;
}

void PipelineRun::end_pass(std::size_t executor, Nanoseconds now) {
  Executor& self = executors_[executor];
  self.running = false;
  switch (self.pass.kind) {
    case PassKind::kForward:
      ++self.next;
      ++finished(executor, self.pass.chunk).forwards;
      self.sending = waits_for_activations() && place(self.stage, self.pass.chunk) + 1 < places_.size();
      send_activation(self.stage, self.pass.chunk, now);
      break;
    case PassKind::kBackward:
      ++self.next;
      ++finished(executor, self.pass.chunk).backwards;
      self.last_backward = now;
      if (!zero_bubble()) ++self.released;
      send_gradient(self.stage, self.pass.chunk, now);
      break;
    case PassKind::kWeightGradient:
      ++self.weight_gradients;
      ++self.released;
      self.last_backward = now;
      break;
  }
}

void PipelineRun::receive_activation(std::size_t place) {
  ++places_[place].activations;
  to_start_.push_back(place % orders_.size());
  if (!waits_for_activations()) return;
  const std::size_t from = (place - 1) % orders_.size();
  const std::size_t chunk = (place - 1) / orders_.size();
  for (std::size_t p = 0; p < parts(from); ++p) {
    Executor& executor = executors_[first_executor_[from] + p];
    const bool own = executor.pass.kind == PassKind::kForward && executor.pass.chunk == chunk;
    if (own && executor.pass.microbatch < places_[place].activations) executor.sending = false;
  }
  to_start_.push_back(from);
}

void PipelineRun::send_activation(std::size_t stage, std::size_t chunk, Nanoseconds now) {
  const std::size_t from = place(stage, chunk);
  if (from + 1 == places_.size()) return;
  ChunkState& state = places_[from];
  // A transfer starts when the last part has finished the microbatch.
  for (std::size_t p = 0; p < parts(stage); ++p) {
    if (finished(first_executor_[stage] + p, chunk).forwards <= state.sent_activations) return;
  }
  const SimStage& boundary = pipeline_->stages[stage];
  const Nanoseconds start = std::max(now, links_[stage].forward_free);
  links_[stage].forward_free = start + boundary.occupancy;
  record(EventKind::kSendActivation, stage, 0, state.sent_activations++, chunk, start, start + boundary.latency);
  schedule(start + boundary.latency, EventType::kActivationArrives, from + 1);
}

void PipelineRun::send_gradient(std::size_t stage, std::size_t chunk, Nanoseconds now) {
  const std::size_t from = place(stage, chunk);
  if (from == 0) return;
  ChunkState& state = places_[from];
  for (std::size_t p = 0; p < parts(stage); ++p) {
    if (finished(first_executor_[stage] + p, chunk).backwards <= state.sent_gradients) return;
  }
  const std::size_t before = (from - 1) % orders_.size();  // the stage that gets it, and whose boundary it crosses
  const SimStage& boundary = pipeline_->stages[before];
  const Nanoseconds start = std::max(now, links_[before].backward_free);
  links_[before].backward_free = start + boundary.occupancy;
  record(EventKind::kSendGradient, stage, 0, state.sent_gradients++, chunk, start, start + boundary.latency);
  schedule(start + boundary.latency, EventType::kGradientArrives, from - 1);
}

void PipelineRun::record(EventKind kind, std::size_t stage, std::size_t part, std::int64_t microbatch,
                         std::size_t chunk, Nanoseconds start, Nanoseconds end) {
  if (events_ == nullptr) return;
  events_->push_back({kind, pipeline_id_, static_cast<int>(stage), static_cast<int>(part), microbatch, start, end,
                      static_cast<int>(chunk)});
}

}  // namespace tangram::simulate
