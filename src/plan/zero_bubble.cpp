#include "tangram/plan/zero_bubble.hpp"

#include <algorithm>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/put_off.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::plan {

namespace {

Bytes room_of(const PartPrediction& p) {
  return p.usable_memory - p.static_memory - p.transient - cost::put_off_peak(p.activation, p.put_off, p.in_flight, 0);
}

void set_costs(const LaunchPlan& plan, const Stage& stage, Part& part) {
  const auto units = cost::unit_costs(plan.model, shape_of(plan, part), part.strategy.degrees,
                                      static_cast<int>(part.samples), &plan.profiles);
  TANGRAM_ASSERT(units.has_value());  // it has been priced with them
  const cost::PutOffCost cost =
      cost::put_off_cost(plan.model, *units, model::signature(plan.model, stage.chunks.front()));
  part.predicted.weight_gradient = std::min(cost.weight_gradient, part.predicted.backward);
  part.predicted.put_off = cost.held;
}

/// Beyond those in flight; negative: not even those.
std::int64_t most_put_off(const Part& part, std::int64_t microbatches) {
  const PartPrediction& p = part.predicted;
  const Bytes room = room_of(p);
  if (room < Bytes(0)) return -1;
  const std::int64_t left = microbatches - p.in_flight;
  return p.put_off > Bytes(0) ? std::min(left, room.value() / p.put_off.value()) : left;
}

void keep_whole(Stage& stage) {
  for (Part& part : stage.parts) {
    part.predicted.weight_gradient = Nanoseconds(0);
    part.predicted.put_off = Bytes(0);
  }
}

void set_put_off(Stage& stage, std::int64_t count) {
  stage.put_off = count;
  for (Part& part : stage.parts) {
    PartPrediction& p = part.predicted;
    p.peak_memory =
        p.static_memory + p.transient + cost::put_off_peak(p.activation, p.put_off, p.in_flight, stage.put_off);
  }
}

}  // namespace

bool put_off_weight_gradients(LaunchPlan& plan) {
  TANGRAM_ASSERT(plan.schedule() == runtime::Schedule::k1F1B);
  for (Stage& stage : plan.stages) {
    const std::int64_t microbatches = at(plan.pipelines, stage.pipeline).microbatches;
    std::int64_t most = microbatches;
    for (Part& part : stage.parts) {
      set_costs(plan, stage, part);
      most = std::min(most, most_put_off(part, microbatches));
    }
    if (most < 0) keep_whole(stage);
    set_put_off(stage, std::max<std::int64_t>(0, most));
  }
  plan.zero_bubble = std::ranges::any_of(plan.stages, &Stage::puts_off);
  if (plan.zero_bubble) plan.predicted.closed_form = check(plan).closed_form;
  return plan.zero_bubble;
}

void limit_put_off(LaunchPlan& plan, std::span<const std::int64_t> most) {
  for (Stage& stage : plan.stages) set_put_off(stage, std::min(stage.put_off, at(most, stage.id)));
}

}  // namespace tangram::plan
