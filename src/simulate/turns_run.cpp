#include "turns_run.hpp"

#include <algorithm>

#include "tangram/base/assert.hpp"

namespace tangram::simulate {

TurnsRun::TurnsRun(const SimPipeline& pipeline, int pipeline_id, std::vector<Event>* events)
    : pipeline_(pipeline),
      turns_(*pipeline.turns),
      pipeline_id_(pipeline_id),
      events_(events),
      of_round_(pipeline),
      free_(pipeline.stages.size()) {
  TANGRAM_ASSERT(turns_.rounds > 0 && pipeline.microbatches % turns_.rounds == 0);
  TANGRAM_ASSERT(turns_.encoders.size() == pipeline.stages.size());
  of_round_.turns.reset();
  of_round_.microbatches = pipeline.microbatches / turns_.rounds;
}

bool TurnsRun::run() {
  PipelineRun language(of_round_, pipeline_id_, events_ == nullptr ? nullptr : &pipeline_events_);
  if (!language.run()) return false;
  for (std::size_t s = 0; s < pipeline_.stages.size(); ++s) {
    pipeline_ends_.push_back(language.last_backward(s));
    max_in_flight_.push_back(language.max_in_flight(s));
  }
  for (std::int64_t round = 0; round < turns_.rounds; ++round) run_round(round);
  return true;
}

void TurnsRun::run_round(std::int64_t round) {
  const Nanoseconds start = run_forward(round) + turns_.gather;
  record_pipeline(round, start);
  const Nanoseconds gradients = start + pipeline_ends_.front() + turns_.broadcast;
  for (std::size_t s = 0; s < free_.size(); ++s) {
    free_[s] = start + pipeline_ends_[s];
    if (turns_.encoders[s].backward > Nanoseconds(0)) run_backward(round, s, std::max(free_[s], gradients));
  }
}

// When all of them are through: what they made goes to other GPUs.
Nanoseconds TurnsRun::run_forward(std::int64_t round) {
  Nanoseconds made;
  for (std::size_t s = 0; s < free_.size(); ++s) {
    const Nanoseconds end = free_[s] + turns_.encoders[s].forward;
    record(EventKind::kEncoderForward, s, round, free_[s], end);
    made = std::max(made, end);
  }
  return made;
}

void TurnsRun::run_backward(std::int64_t round, std::size_t stage, Nanoseconds start) {
  free_[stage] = start + turns_.encoders[stage].backward;
  record(EventKind::kEncoderBackward, stage, round, start, free_[stage]);
}

void TurnsRun::record(EventKind kind, std::size_t stage, std::int64_t round, Nanoseconds start, Nanoseconds end) {
  if (events_ == nullptr || start == end) return;
  events_->push_back({kind, pipeline_id_, static_cast<int>(stage), 0, round, start, end, 0});
}

void TurnsRun::record_pipeline(std::int64_t round, Nanoseconds start) {
  if (events_ == nullptr) return;
  for (Event event : pipeline_events_) {
    event.microbatch += round * of_round_.microbatches;
    event.start += start;
    event.end += start;
    events_->push_back(event);
  }
}

}  // namespace tangram::simulate
