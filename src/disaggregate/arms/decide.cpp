#include "decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

namespace {

// What simulation says, where it was asked.
double rate_of(const Arm& arm) { return arm.simulated > 0 ? std::min(arm.simulated, arm.rate) : arm.rate; }

class Deciding {
 public:
  explicit Deciding(const Question& question)
      : question_(question), kernels_(at(question.arms, ArmKind::kKernels)), simpler_(best_simpler()) {}

  Decision run() {
    if (!kernels_.fits && !simpler_.fits) {
      return {Rule::kNothingFits, ArmKind::kOneGpu, ArmKind::kOneGpu, 0,
              "memory suffices for no way to place the model"};
    }
    if (!kernels_.fits) {
      return of(Rule::kLinks, simpler_.kind, 0, "no placement by kernels keeps to the terms, with what messages take");
    }
    if (!simpler_.fits) return of(Rule::kMemory, ArmKind::kKernels, kNever, "only single kernels fit the GPUs' memory");
    const double gain = rate_of(kernels_) / rate_of(simpler_);
    if (gain <= 1) return without_gain(gain);
    // The interval of the simulated rate: as far to both sides as that of the rate by resources.
    const double low = rate_of(kernels_) * kernels_.low / kernels_.rate;
    if (low <= rate_of(simpler_) && has_errors()) {
      return of(Rule::kWithinErrors, simpler_.kind, gain,
                fmt::format("{:+.1f} % by kernels is within the errors of their times: not distinguishable from {}{}",
                            100 * (gain - 1), to_string(simpler_.kind), micro_batches(in_one_micro_batch())));
    }
    return with_gain(gain);
  }

 private:
  // Of equal ones the simplest.
  [[nodiscard]] const Arm& best_simpler() const {
    const Arm* best = &question_.arms.front();
    for (const Arm& arm : question_.arms) {
      if (arm.kind != ArmKind::kKernels && arm.fits && rate_of(arm) > rate_of(*best) * (1 + 1e-9)) best = &arm;
    }
    return *best;
  }

  [[nodiscard]] bool has_errors() const { return kernels_.high > kernels_.low; }

  [[nodiscard]] Decision of(Rule rule, ArmKind arm, double number, std::string why) const {
    return {rule, arm, simpler_.kind, number, std::move(why)};
  }

  [[nodiscard]] Decision with_gain(double gain) const {
    const Arm& replicas = at(question_.arms, ArmKind::kReplicas);
    const bool all_hold_it =
        replicas.fits && replicas.placements.size() == question_.batches.front().problem.classes.size();
    if (!all_hold_it) {
      return of(Rule::kMemory, ArmKind::kKernels, gain,
                fmt::format("some GPUs do not hold the model whole; by kernels its memory can be placed: {:.2f} x {}",
                            gain, to_string(simpler_.kind)));
    }
    return of(
        Rule::kRatiosDiffer, ArmKind::kKernels, gain,
        fmt::format("the GPUs' ratio differs from kernel to kernel: {:.2f} x {}", gain, to_string(simpler_.kind)));
  }

  [[nodiscard]] Decision without_gain(double gain) const {
    const double in_one = in_one_micro_batch();
    if (in_one > 1) {
      return of(Rule::kWeightsPerMicroBatch, simpler_.kind, in_one,
                fmt::format("{:.2f} of {} by kernels{}", gain, to_string(simpler_.kind), micro_batches(in_one)));
    }
    const double linkless = unlimited(true) / rate_of(simpler_);
    if (linkless > 1) {
      return of(
          Rule::kLinks, simpler_.kind, linkless,
          fmt::format("messages and passes in flight cost more than kernels gain: {:.2f} of {}, {:.2f} if neither did",
                      gain, to_string(simpler_.kind), linkless));
    }
    return of(Rule::kUniformRatios, simpler_.kind, linkless,
              fmt::format("the GPUs' ratio is much the same for all kernels: at most {:.2f} of {}", linkless,
                          to_string(simpler_.kind)));
  }

  // Kernels over the best simpler way, if all requests went together and any number of such micro-batches were in
  // flight; 0: requests are not limited.
  [[nodiscard]] double in_one_micro_batch() const {
    return question_.terms.most_requests > 0 ? unlimited(false) / rate_of(simpler_) : 0;
  }

  [[nodiscard]] std::string micro_batches(double in_one) const {
    if (kernels_.in_flight < 2 || in_one <= 1) return {};
    return fmt::format("; weights are read per micro-batch, {} times for {} requests", kernels_.in_flight,
                       kernels_.requests_in_memory);
  }

  // The rate that no resource forbids kernels, with any number in flight at the largest size that is allowed, memory
  // left aside; without links on top of that.
  [[nodiscard]] double unlimited(bool without_links) const {
    constexpr int kAny = 1'000'000;
    double most = 0;
    for (const Batch& batch : question_.batches) {
      if (question_.terms.most_requests > 0 && batch.requests > question_.terms.most_requests) continue;
      Problem problem = with_in_flight(batch.problem, kAny);
      for (GpuClass& c : problem.classes) c.memory = kNever;
      if (without_links) problem.links = {problem.class_count(), problem.class_count(), Link{}};
      most = std::max(most, batch.requests / period_bound(problem, question_.terms.effort));
    }
    return most;
  }

  const Question& question_;
  const Arm& kernels_;
  const Arm& simpler_;
};

}  // namespace

std::string_view to_string(Rule rule) {
  constexpr std::array<std::string_view, 7> kNames = {
      "nothing fits", "memory", "ratios differ", "within errors", "weights per micro-batch", "links", "uniform ratios"};
  return at(kNames, rule);
}

Decision decide(const Question& question) { return Deciding(question).run(); }

}  // namespace tangram::disaggregate
