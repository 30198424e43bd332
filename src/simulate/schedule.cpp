#include <algorithm>

#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

namespace {

SimStage stage_of(const plan::Stage& stage) {
  SimStage result;
  result.warmup = stage.warmup;
  result.deferrable = stage.put_off;
  for (const plan::Part& part : stage.parts) {
    result.parts.push_back({part.predicted.forward, part.predicted.backward, part.predicted.gradient_sync_exposed,
                            part.predicted.optimizer_step});
    result.parts.back().weight_gradient = part.predicted.weight_gradient;
    for (const plan::ChunkPrediction& chunk : part.predicted.chunks) {
      result.parts.back().chunks.push_back({chunk.forward, chunk.backward});
    }
  }
  return result;
}

SimTurns turns_of(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline) {
  SimTurns turns;
  turns.rounds = plan.colocated->each_microbatch() ? pipeline.microbatches : 1;
  turns.gather = plan.colocated->gather;
  turns.broadcast = plan.colocated->broadcast;
  for (const int id : pipeline.stages) {
    const plan::EncoderPrediction& own = *plan.stage(id).parts.front().encoders;
    turns.encoders.push_back({own.forward, own.backward, own.gradient_sync_exposed, own.optimizer_step});
  }
  return turns;
}

}  // namespace

Schedule schedule_of(const plan::LaunchPlan& plan) { return schedule_of(plan, plan.semantics().transfers); }

Schedule schedule_of(const plan::LaunchPlan& plan, Transfers transfers) {
  Schedule schedule;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    SimPipeline run;
    run.microbatches = pipeline.microbatches;
    run.transfers = transfers;
    if (plan.is_interleaved()) {
      run.kind = ScheduleKind::kInterleaved;
      run.group = plan.group;
    }
    if (plan.zero_bubble) run.kind = ScheduleKind::kZeroBubble;
    if (plan.colocated) run.turns = turns_of(plan, pipeline);
    for (const int id : pipeline.stages) {
      SimStage stage = stage_of(plan.stage(id));
      const auto boundary = std::find_if(plan.boundaries.begin(), plan.boundaries.end(),
                                         [&](const plan::Boundary& b) { return b.from == id; });
      if (boundary != plan.boundaries.end()) {
        stage.latency = boundary->latency;
        stage.occupancy = boundary->occupancy;
      }
      run.stages.push_back(std::move(stage));
    }
    schedule.pipelines.push_back(std::move(run));
  }
  return schedule;
}

}  // namespace tangram::simulate
