// A plan's written predictions beside those that simulating it gives.
#include <cmath>
#include <string>

#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

namespace {

constexpr double kMostPasses = 1e7;
constexpr double kRounding = 1e-9;  // of doubles that were worked out elsewhere

double passes_of(const plan::LaunchPlan& plan) {
  double passes = 0;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    passes += static_cast<double>(pipeline.microbatches) * static_cast<double>(pipeline.stages.size() * plan.chunks());
  }
  return passes;
}

class Comparison {
 public:
  explicit Comparison(const plan::Predicted& written) : written_(written) {}

  void simulated(const plan::Predicted& real) {
    code_ = "simulation-differs";
    compare("iteration_s", to_seconds(written_.iteration), to_seconds(real.iteration));
    compare("bottleneck_stage", written_.bottleneck_stage, real.bottleneck_stage);
    compare("bubble_fraction", written_.bubble_fraction, real.bubble_fraction);
    const plan::Breakdown& ours = written_.breakdown;
    compare("breakdown.compute_s", ours.compute, real.breakdown.compute);
    compare("breakdown.bubble_s", ours.bubble, real.breakdown.bubble);
    compare("breakdown.exposed_sync_s", ours.exposed_sync, real.breakdown.exposed_sync);
    compare("breakdown.optimizer_s", ours.optimizer, real.breakdown.optimizer);
  }

  void rates(const plan::Predicted& real, bool fleet_known) {
    code_ = "prediction-differs";
    compare("tokens_per_s", written_.tokens_per_s, real.tokens_per_s);
    compare("mfu", written_.mfu, real.mfu);
    compare("cost_per_mtoken", written_.cost_per_mtoken, real.cost_per_mtoken);
    if (fleet_known) compare("mfu_fleet", written_.mfu_fleet, real.mfu_fleet);
  }

  void add(std::string code, std::string message) {
    found_.push_back({std::move(code), "predicted", std::move(message)});
  }
  [[nodiscard]] std::vector<plan::Violation> take() && { return std::move(found_); }

 private:
  void compare(const char* name, double written, double real) {
    if (std::abs(written - real) <= kRounding * std::max(std::abs(written), std::abs(real))) return;
    add(code_, std::string(name) + " is " + std::to_string(written) + ", recomputed it is " + std::to_string(real));
  }

  const plan::Predicted& written_;
  std::string code_;
  std::vector<plan::Violation> found_;
};

}  // namespace

std::vector<plan::Violation> differences(const plan::LaunchPlan& plan, FlopsPerSecond fleet_peak) {
  Comparison comparison(plan.predicted);
  plan::Predicted real = plan.predicted;
  if (passes_of(plan) <= kMostPasses) {
    const Result result = simulate(schedule_of(plan));
    if (result.deadlock) {
      comparison.add("deadlock", "the schedule cannot finish: two stages wait for each other");
      return std::move(comparison).take();
    }
    real = predicted_by(plan, result, fleet_peak);
    comparison.simulated(real);
  }
  set_rates(plan, plan.predicted.iteration, fleet_peak, real);
  comparison.rates(real, fleet_peak.value() > 0);
  return std::move(comparison).take();
}

}  // namespace tangram::simulate
