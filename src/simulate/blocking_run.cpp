#include "blocking_run.hpp"

#include <algorithm>

#include "tangram/base/assert.hpp"

namespace tangram::simulate {

BlockingRun::BlockingRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events)
    : pipeline_(&pipeline), pipeline_id_(pipeline_id), events_(events), stages_(pipeline.stages.size()) {
  TANGRAM_ASSERT(pipeline.kind == ScheduleKind::k1F1B);
  for (std::size_t s = 0; s < stages_.size(); ++s) stages_[s].steps = steps_of(s);
}

// Warm-up: receive, forward, send. Then forward; send it and receive a gradient together; backward; send its gradient
// and receive the next activation together. At the end: receive a gradient, backward, send its gradient.
std::vector<BlockingRun::Step> BlockingRun::steps_of(std::size_t stage) const {
  const std::int64_t all = pipeline_->microbatches;
  const std::int64_t lead = std::min(all, pipeline_->stages[stage].warmup);
  const bool before = stage > 0;
  const bool behind = stage + 1 < pipeline_->stages.size();
  std::vector<Step> steps;
  const auto pass = [&](EventKind kind, std::int64_t microbatch) { steps.push_back({kind, microbatch, {}}); };
  const auto post = [&](std::vector<Transfer> transfers) {
    if (!transfers.empty()) steps.push_back({EventKind::kForward, 0, std::move(transfers)});
  };
  const auto activation = [](std::size_t from, std::int64_t microbatch) { return Transfer{false, from, microbatch}; };
  const auto gradient = [](std::size_t to, std::int64_t microbatch) { return Transfer{true, to, microbatch}; };
  for (std::int64_t f = 0; f < lead; ++f) {
    if (before) post({activation(stage - 1, f)});
    pass(EventKind::kForward, f);
    if (behind) post({activation(stage, f)});
  }
  if (before && lead < all) post({activation(stage - 1, lead)});
  for (std::int64_t b = 0; b < all; ++b) {
    const std::int64_t f = b + lead;
    if (f < all) pass(EventKind::kForward, f);
    if (behind && f < all) post({activation(stage, f), gradient(stage, b)});
    if (behind && f >= all) post({gradient(stage, b)});
    pass(EventKind::kBackward, b);
    if (before && f + 1 < all) post({gradient(stage - 1, b), activation(stage - 1, f + 1)});
    if (before && f + 1 >= all) post({gradient(stage - 1, b)});
  }
  return steps;
}

bool BlockingRun::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages_.size(); ++s) moved = advance(s) || moved;
  }
  return std::ranges::all_of(stages_, [](const StageRun& stage) { return stage.next == stage.steps.size(); });
}

/// As far as the stage comes; false: nothing happened.
bool BlockingRun::advance(std::size_t stage) {
  StageRun& self = stages_[stage];
  const std::size_t first = self.next;
  bool posted = false;
  while (self.next < self.steps.size()) {
    const Step& step = self.steps[self.next];
    if (step.transfers.empty()) {
      pass(stage, step);
    } else {
      posted = post(self, step) || posted;
      if (!arrived(step)) break;
      self.now = arrival(step);
      self.posted = false;
    }
    ++self.next;
  }
  return posted || self.next > first;
}

/// False: it was posted before.
bool BlockingRun::post(StageRun& self, const Step& step) {
  if (self.posted) return false;
  for (const Transfer& transfer : step.transfers) {
    Posted& posted = posted_[transfer];
    ++posted.ends;
    posted.last = std::max(posted.last, self.now);
    if (posted.ends < kEnds) continue;
    const EventKind kind = transfer.gradient ? EventKind::kSendGradient : EventKind::kSendActivation;
    record(kind, transfer.stage + (transfer.gradient ? 1 : 0), 0, transfer.microbatch, posted.last,
           posted.last + pipeline_->stages[transfer.stage].latency);
  }
  self.posted = true;
  return true;
}

bool BlockingRun::arrived(const Step& step) const {
  return std::ranges::all_of(step.transfers, [&](const Transfer& t) { return posted_.at(t).ends == kEnds; });
}

Nanoseconds BlockingRun::arrival(const Step& step) const {
  Nanoseconds last;
  for (const Transfer& transfer : step.transfers) {
    last = std::max(last, posted_.at(transfer).last + pipeline_->stages[transfer.stage].latency);
  }
  return last;
}

/// Parts of a mixed stage wait for each other: what is sent and received belongs to all of them.
void BlockingRun::pass(std::size_t stage, const Step& step) {
  StageRun& self = stages_[stage];
  const bool forward = step.kind == EventKind::kForward;
  Nanoseconds longest;
  const std::vector<SimPart>& parts = pipeline_->stages[stage].parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Nanoseconds time = forward ? parts[p].forward : parts[p].backward;
    longest = std::max(longest, time);
    record(step.kind, stage, p, step.microbatch, self.now, self.now + time);
  }
  self.in_flight += forward ? 1 : 0;
  self.max_in_flight = std::max(self.max_in_flight, self.in_flight);
  self.in_flight -= forward ? 0 : 1;
  self.now += longest;
  if (!forward) self.last_backward = self.now;
}

void BlockingRun::record(EventKind kind, std::size_t stage, std::size_t part, std::int64_t microbatch,
                         Nanoseconds start, Nanoseconds end) {
  if (events_ == nullptr) return;
  events_->push_back({kind, pipeline_id_, static_cast<int>(stage), static_cast<int>(part), microbatch, start, end, 0});
}

}  // namespace tangram::simulate
