#include "tangram/disaggregate/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "decide.hpp"
#include "groups.hpp"
#include "layer_split.hpp"
#include "replicas.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/disaggregate/timeline.hpp"

namespace tangram::disaggregate {

namespace {

struct Tried {
  const Batch* batch = nullptr;
  int in_flight = 1;
  GroupPlan plan;
  double simulated = 0;  // period; 0: not simulated

  [[nodiscard]] double period() const { return std::max(plan.period, simulated); }
  [[nodiscard]] double rate() const { return batch->requests / period(); }
  // From one pass of the last phase to the next.
  [[nodiscard]] double token_seconds() const { return in_flight * period() / batch->problem.phases.back().passes; }
};

GroupPlan of_kernels(Solution solution) {
  GroupPlan plan;
  plan.bound = solution.bound;
  if (!solution.found) return plan;
  plan.placements = {{1, std::move(solution.placement)}};
  plan.period = solution.value;
  plan.memory = std::move(solution.usage.memory);
  return plan;
}

// What an arm does with one batch and so many in flight.
GroupPlan try_arm(const Problem& problem, ArmKind kind, const SolverEffort& effort) {
  switch (kind) {
    case ArmKind::kLayers: return split_layers(problem);
    case ArmKind::kPhases:
    case ArmKind::kBlocks:
    case ArmKind::kPhaseBlocks: return place_groups(problem, groups_of(problem, kind));
    case ArmKind::kPhasesShared:
    case ArmKind::kBlocksShared:
    case ArmKind::kPhaseBlocksShared: return share_groups(problem, groups_of(problem, kind));
    case ArmKind::kOneGpu:
    case ArmKind::kReplicas:
    case ArmKind::kKernels: break;
  }
  return of_kernels(solve(problem, Objective::kThroughput, effort));
}

class Comparing {
 public:
  Comparing(std::span<const Batch> batches, const Terms& terms) : batches_(batches), terms_(terms) {
    for (const Batch& batch : batches) {
      slow_.push_back({batch.requests, with_errors(batch.problem, 1)});
      fast_.push_back({batch.requests, with_errors(batch.problem, -1)});
    }
  }

  Comparison run() {
    Comparison comparison;
    for (int i = 0; i < kArmCount; ++i) comparison.arms.push_back(arm(static_cast<ArmKind>(i)));
    comparison.decision = decide({batches_, terms_, comparison.arms});
    return comparison;
  }

  [[nodiscard]] Arm arm(ArmKind kind) const {
    if (kind == ArmKind::kOneGpu) return replicated(kind, plan_one_gpu(batches_, terms_));
    if (kind == ArmKind::kReplicas) return replicated(kind, plan_replicas(batches_, terms_));
    return split(kind);
  }

 private:
  [[nodiscard]] Arm replicated(ArmKind kind, const ReplicaPlan& plan) const {
    Arm arm;
    arm.kind = kind;
    if (plan.parts.empty()) return arm;
    arm.fits = true;
    arm.rate = arm.bound = plan.rate;
    arm.low = rate_of(slow_, plan);
    arm.high = rate_of(fast_, plan);
    arm.requests = arm.requests_in_memory = plan.requests;
    arm.memory.assign(batches_.front().problem.classes.size(), 0);
    for (const ReplicaPlan::Part& part : plan.parts) {
      const Batch& batch = batches_[part.batch];
      const Usage usage = alone_on(batch.problem, part.on);
      arm.token_seconds = std::max(arm.token_seconds, usage.period / batch.problem.phases.back().passes);
      at(arm.memory, part.on) = at(usage.memory, part.on);
      const double share = part.gpus * batch.requests / usage.period / plan.rate;
      arm.placements.push_back({share, Placement(batch.problem.kernels.size(), part.on)});
      arm.replica_requests.push_back(batch.requests);
    }
    return arm;
  }

  struct Size {
    const Batch* batch;
    int in_flight;
    double most;  // rate that no plan of kernels exceeds
  };

  // The best of all sizes and numbers in flight.
  [[nodiscard]] Arm split(ArmKind kind) const {
    std::vector<Tried> tried;
    const std::vector<Size> all = sizes(kind);
    double bound = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Size& size = all[i];
      if (kind == ArmKind::kKernels && (i >= kMostSizes || (!tried.empty() && size.most < tried.front().rate()))) {
        bound = std::max(bound, size.most);
        break;
      }
      const Problem problem = with_in_flight(size.batch->problem, size.in_flight);
      GroupPlan plan = try_arm(problem, kind, terms_.effort);
      bound = std::max(bound, size.batch->requests / plan.bound);
      keep(problem, size, std::move(plan), tried);
    }
    if (kind == ArmKind::kKernels && terms_.simulated_rounds > 0) try_fewer_messages(tried);
    Arm arm = tried.empty() ? Arm{} : arm_of(tried.front());
    arm.kind = kind;
    arm.bound = bound;
    return arm;
  }

  // Best first.
  void keep(const Problem& problem, const Size& size, GroupPlan plan, std::vector<Tried>& tried) const {
    if (plan.placements.empty()) return;
    Tried added{size.batch, size.in_flight, std::move(plan)};
    if (terms_.simulated_rounds > 0) {
      // A simulation that ends may look shorter than what no order of work undercuts.
      const double simulated = simulated_period(problem, added.plan.placements, terms_.simulated_rounds);
      added.simulated = std::max(simulated, added.plan.period);
    }
    if (added.token_seconds() > terms_.token_seconds) return;
    tried.push_back(std::move(added));
    std::ranges::sort(tried, std::greater<>(), &Tried::rate);
  }

  // The best sizes once more, for placements that are simulated to be better than those that resources call best.
  void try_fewer_messages(std::vector<Tried>& tried) const {
    constexpr std::size_t kAgain = 3;
    std::vector<Tried> again(tried.begin(),
                             tried.begin() + static_cast<std::ptrdiff_t>(std::min(kAgain, tried.size())));
    for (const Tried& of : again) {
      const Problem problem = with_in_flight(of.batch->problem, of.in_flight);
      SimulatedSolution found = solve_simulated(problem, terms_.effort, terms_.simulated_rounds);
      keep(problem, {of.batch, of.in_flight, kNever}, of_kernels(std::move(found.solution)), tried);
    }
  }

  // Sizes that the terms allow; for kernels those with the highest bound first.
  [[nodiscard]] std::vector<Size> sizes(ArmKind kind) const {
    std::vector<Size> all;
    for (const Batch& batch : batches_) {
      for (const int in_flight : terms_.in_flight) {
        const std::int64_t requests = std::int64_t{in_flight} * batch.requests;
        if (terms_.most_requests > 0 && requests > terms_.most_requests) continue;
        double most = kNever;
        if (kind == ArmKind::kKernels) {
          most = batch.requests / period_bound(with_in_flight(batch.problem, in_flight), terms_.effort);
          if (most <= 0) continue;
        }
        all.push_back({&batch, in_flight, most});
      }
    }
    std::ranges::sort(all, std::greater<>(), &Size::most);
    return all;
  }

  [[nodiscard]] Arm arm_of(const Tried& of) const {
    const auto number = static_cast<std::size_t>(of.batch - batches_.data());
    const auto rate_with = [&](const Batch& batch) {
      return batch.requests / period_of(with_in_flight(batch.problem, of.in_flight), of.plan.placements);
    };
    Arm arm;
    arm.fits = true;
    arm.rate = of.batch->requests / of.plan.period;
    arm.simulated = of.simulated > 0 ? of.batch->requests / of.simulated : 0;
    arm.low = rate_with(slow_[number]);
    arm.high = rate_with(fast_[number]);
    arm.requests = of.batch->requests;
    arm.in_flight = of.in_flight;
    arm.requests_in_memory = of.batch->requests * of.in_flight;
    arm.token_seconds = of.token_seconds();
    arm.memory = of.plan.memory;
    arm.placements = of.plan.placements;
    return arm;
  }

  static Problem with_errors(const Problem& problem, int sign) {
    Problem result = problem;
    for (Kernel& kernel : result.kernels) {
      const double factor = std::max(0.0, 1 + sign * kErrorReach * kernel.error);
      for (double& seconds : kernel.seconds) seconds *= factor;
    }
    return result;
  }

  // Errors are those of held-out rows in the mean: if they are normal, one in twenty is larger than so many of them.
  static constexpr double kErrorReach = 2.5;
  static constexpr std::size_t kMostSizes = 12;  // of kernels: those with the highest bounds

  std::span<const Batch> batches_;
  const Terms& terms_;
  std::vector<Batch> slow_;
  std::vector<Batch> fast_;
};

}  // namespace

std::string_view to_string(ArmKind kind) {
  constexpr std::array<std::string_view, kArmCount> kNames = {"one GPU",
                                                              "replicas",
                                                              "layer split",
                                                              "prefill/decode",
                                                              "prefill/decode + overflow",
                                                              "attention/FFN",
                                                              "attention/FFN, shared",
                                                              "phase x block",
                                                              "phase x block, shared",
                                                              "kernels"};
  return at(kNames, kind);
}

Arm arm_of(std::span<const Batch> batches, ArmKind kind, const Terms& terms) {
  TANGRAM_ASSERT(!batches.empty() && !terms.in_flight.empty());
  return Comparing(batches, terms).arm(kind);
}

Comparison compare(std::span<const Batch> batches, const Terms& terms) {
  TANGRAM_ASSERT(!batches.empty() && !terms.in_flight.empty());
  return Comparing(batches, terms).run();
}

}  // namespace tangram::disaggregate
