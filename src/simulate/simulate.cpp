#include "tangram/simulate/simulate.hpp"

#include <algorithm>
#include <tuple>

#include "blocking_run.hpp"
#include "pipeline_run.hpp"
#include "turns_run.hpp"

namespace tangram::simulate {

namespace {

/// Forward and backward passes of one microbatch.
Nanoseconds compute_of(ScheduleKind kind, const SimPart& part) {
  if (kind != ScheduleKind::kInterleaved || part.chunks.empty()) return part.forward + part.backward;
  Nanoseconds sum;
  for (const SimChunk& chunk : part.chunks) sum += chunk.forward + chunk.backward;
  return sum;
}

const SimPart& slowest_part(ScheduleKind kind, const SimStage& stage) {
  return *std::max_element(stage.parts.begin(), stage.parts.end(), [kind](const SimPart& a, const SimPart& b) {
    return compute_of(kind, a) < compute_of(kind, b);
  });
}

/// Of colocated encoders; nothing where there are none.
SimEncoders encoders_of(const SimPipeline& pipeline, std::size_t stage) {
  return pipeline.turns ? pipeline.turns->encoders[stage] : SimEncoders{};
}

/// With the part's encoders.
Nanoseconds exposed_of(const SimPipeline& pipeline, std::size_t stage, const SimPart& part) {
  return part.exposed_sync + encoders_of(pipeline, stage).exposed_sync;
}

Nanoseconds step_of(const SimPipeline& pipeline, std::size_t stage, const SimPart& part) {
  return part.optimizer_step + encoders_of(pipeline, stage).optimizer_step;
}

/// When all gradients of the stage are synchronised.
Nanoseconds sync_end(const SimPipeline& pipeline, std::size_t stage, Nanoseconds last_backward) {
  Nanoseconds longest;
  for (const SimPart& part : pipeline.stages[stage].parts) {
    longest = std::max(longest, exposed_of(pipeline, stage, part));
  }
  return last_backward + longest;
}

/// Forward and backward passes of all microbatches, with the encoders'.
Nanoseconds busy_of(const SimPipeline& pipeline, std::size_t stage, const SimPart& slowest) {
  Nanoseconds busy = compute_of(pipeline.kind, slowest) * pipeline.microbatches;
  const SimEncoders encoders = encoders_of(pipeline, stage);
  if (pipeline.turns) busy += (encoders.forward + encoders.backward) * pipeline.turns->rounds;
  return busy;
}

void record_tail(const Schedule& schedule, const std::vector<std::vector<Nanoseconds>>& last_backwards,
                 Nanoseconds optimizer_start, std::vector<Event>& events) {
  for (std::size_t p = 0; p < schedule.pipelines.size(); ++p) {
    const SimPipeline& pipeline = schedule.pipelines[p];
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Nanoseconds sync_start = last_backwards[p][s];
      for (std::size_t k = 0; k < pipeline.stages[s].parts.size(); ++k) {
        const SimPart& part = pipeline.stages[s].parts[k];
        Event event{EventKind::kGradientSync,
                    static_cast<int>(p),
                    static_cast<int>(s),
                    static_cast<int>(k),
                    0,
                    sync_start,
                    sync_start + exposed_of(pipeline, s, part),
                    0};
        if (event.end > event.start) events.push_back(event);
        event.kind = EventKind::kOptimizer;
        event.start = optimizer_start;
        event.end = optimizer_start + step_of(pipeline, s, part);
        if (event.end > event.start) events.push_back(event);
      }
    }
  }
}

void sort_events(std::vector<Event>& events) {
  const auto key = [](const Event& e) {
    return std::tuple(e.start, e.pipeline, e.stage, e.part, e.kind, e.chunk, e.microbatch);
  };
  std::sort(events.begin(), events.end(), [&](const Event& a, const Event& b) { return key(a) < key(b); });
}

/// Runs a pipeline and takes over what it did. False: it cannot finish.
template <class Run>
bool take(Run run, const SimPipeline& pipeline, int id, Result& result, std::vector<Nanoseconds>& last_backwards) {
  if (!run.run()) return false;
  Nanoseconds all;  // the lanes of encoders reduce their gradients together
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) all = std::max(all, run.last_backward(s));
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const SimPart& slowest = slowest_part(pipeline.kind, pipeline.stages[s]);
    const Nanoseconds last = pipeline.turns ? all : run.last_backward(s);
    last_backwards.push_back(last);
    result.last_backward = std::max(result.last_backward, last);
    result.optimizer_start = std::max(result.optimizer_start, sync_end(pipeline, s, last));
    result.stages.push_back({id, static_cast<int>(s), busy_of(pipeline, s, slowest), exposed_of(pipeline, s, slowest),
                             Nanoseconds(0), run.max_in_flight(s)});
  }
  return true;
}

}  // namespace

Result simulate(const Schedule& schedule, bool record) {
  Result result;
  std::vector<std::vector<Nanoseconds>> last_backwards(schedule.pipelines.size());  // [pipeline][stage]
  std::vector<Event>* events = record ? &result.events : nullptr;
  for (std::size_t p = 0; p < schedule.pipelines.size(); ++p) {
    const SimPipeline& pipeline = schedule.pipelines[p];
    const auto id = static_cast<int>(p);
    const bool finished = pipeline.turns ? take(TurnsRun(pipeline, id, events), pipeline, id, result, last_backwards[p])
                          : pipeline.transfers == Transfers::kBlocking
                              ? take(BlockingRun(pipeline, id, events), pipeline, id, result, last_backwards[p])
                              : take(PipelineRun(pipeline, id, events), pipeline, id, result, last_backwards[p]);
    if (finished) continue;
    Result stuck;
    stuck.deadlock = true;
    return stuck;
  }

  for (StageUse& use : result.stages) use.idle = result.optimizer_start - use.busy - use.exposed_sync;
  Nanoseconds longest_step;
  for (const SimPipeline& pipeline : schedule.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      for (const SimPart& part : pipeline.stages[s].parts) {
        longest_step = std::max(longest_step, step_of(pipeline, s, part));
      }
    }
  }
  result.iteration = result.optimizer_start + longest_step;
  if (record) {
    record_tail(schedule, last_backwards, result.optimizer_start, result.events);
    sort_events(result.events);
  }
  return result;
}

}  // namespace tangram::simulate
