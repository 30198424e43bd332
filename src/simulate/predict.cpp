#include <algorithm>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

namespace {

int stage_id(const plan::LaunchPlan& plan, const StageUse& use) {
  return at(at(plan.pipelines, use.pipeline).stages, use.stage);
}

/// Dense peak of the GPUs the plan uses, in the job's precision.
double peak_used(const plan::LaunchPlan& plan) {
  double peak = 0;
  for (const plan::Rank& rank : plan.ranks)
    peak += cost::matrix_peak(plan.island(rank.island).device, plan.model.job.precision).value();
  return peak;
}

std::int64_t samples_per_iteration(const plan::LaunchPlan& plan) {
  std::int64_t samples = 0;
  for (const plan::Pipeline& pipeline : plan.pipelines) samples += pipeline.samples;
  return samples;
}

}  // namespace

double dollars_per_hour(const plan::LaunchPlan& plan) {
  double sum = 0;
  for (const plan::Rank& rank : plan.ranks) {
    const double price = plan.island(rank.island).price_per_gpu_hour.value();
    if (!(price > 0)) return 0;
    sum += price;
  }
  return sum;
}

void set_rates(const plan::LaunchPlan& plan, Nanoseconds iteration, FlopsPerSecond fleet_peak,
               plan::Predicted& predicted) {
  const double seconds = to_seconds(iteration);
  const double tokens =
      static_cast<double>(samples_per_iteration(plan)) * static_cast<double>(plan.model.job.sequence_length);
  predicted.tokens_per_s = seconds > 0 ? tokens / seconds : 0;
  const double flops = model::model_flops_per_iteration(plan.model).value();
  const double used = peak_used(plan);
  predicted.mfu = used > 0 && seconds > 0 ? flops / seconds / used : 0;
  if (fleet_peak.value() > 0) predicted.mfu_fleet = seconds > 0 ? flops / seconds / fleet_peak.value() : 0;
  predicted.cost_per_mtoken = dollars_per_hour(plan) * (seconds / 3600) / tokens * 1e6;
}

plan::Predicted predicted_by(const plan::LaunchPlan& plan, const Result& result, FlopsPerSecond fleet_peak) {
  TANGRAM_ASSERT(!result.deadlock && !result.stages.empty() && result.iteration > Nanoseconds(0));
  plan::Predicted predicted = plan.predicted;
  predicted.iteration = result.iteration;
  set_rates(plan, result.iteration, fleet_peak, predicted);
  const auto bottleneck = std::max_element(result.stages.begin(), result.stages.end(),
                                           [](const StageUse& a, const StageUse& b) { return a.busy < b.busy; });
  predicted.bottleneck_stage = stage_id(plan, *bottleneck);
  predicted.breakdown = {to_seconds(bottleneck->busy), to_seconds(bottleneck->idle),
                         to_seconds(bottleneck->exposed_sync), to_seconds(result.iteration - result.optimizer_start)};
  predicted.bubble_fraction = to_seconds(bottleneck->idle) / to_seconds(result.iteration);
  return predicted;
}

void predict(plan::LaunchPlan& plan, const Result& result, FlopsPerSecond fleet_peak) {
  plan.predicted = predicted_by(plan, result, fleet_peak);
}

}  // namespace tangram::simulate
