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

// What an arm does with one batch and so many in flight.
struct Candidate {
  GroupPlan plan;
  double bound = kNever;  // of the period
};

struct Tried {
  const Batch* batch = nullptr;
  int in_flight = 1;
  Candidate candidate;
  double rate = 0;
};

Problem with_in_flight(const Problem& problem, int in_flight) {
  Problem result = problem;
  for (Phase& phase : result.phases) phase.in_flight = in_flight;
  return result;
}

Candidate whole(GroupPlan plan) {
  const double period = plan.period;
  return {std::move(plan), period};
}

Candidate try_arm(const Problem& problem, ArmKind kind, const SolverEffort& effort) {
  switch (kind) {
    case ArmKind::kLayers: {
      LayerSplit split = split_layers(problem);
      return {std::move(split.plan), split.bound};
    }
    case ArmKind::kPhases:
    case ArmKind::kBlocks:
    case ArmKind::kPhaseBlocks: return whole(place_groups(problem, groups_of(problem, kind)));
    case ArmKind::kPhasesShared:
    case ArmKind::kBlocksShared:
    case ArmKind::kPhaseBlocksShared: return whole(share_groups(problem, groups_of(problem, kind)));
    case ArmKind::kOneGpu:
    case ArmKind::kReplicas:
    case ArmKind::kKernels: break;
  }
  Solution solution = solve(problem, Objective::kThroughput, effort);
  Candidate candidate;
  candidate.bound = solution.bound;
  if (!solution.found) return candidate;
  candidate.plan = {{{1, std::move(solution.placement)}}, solution.value, std::move(solution.usage.memory)};
  return candidate;
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
    for (int i = 0; i < kArmCount; ++i) {
      const auto kind = static_cast<ArmKind>(i);
      if (kind == ArmKind::kOneGpu) {
        comparison.arms.push_back(replicated(kind, plan_one_gpu(batches_, terms_)));
      } else if (kind == ArmKind::kReplicas) {
        comparison.arms.push_back(replicated(kind, plan_replicas(batches_, terms_)));
      } else {
        comparison.arms.push_back(split(kind));
      }
    }
    comparison.decision = decide({batches_, terms_, comparison.arms});
    return comparison;
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
    }
    return arm;
  }

  // The best of all sizes and numbers in flight.
  [[nodiscard]] Arm split(ArmKind kind) const {
    std::vector<Tried> tried;
    double bound = 0;
    for (const auto& [batch, in_flight, most] : sizes(kind)) {
      // Of kernels a size whose bound is below what others reach is not looked at.
      if (kind == ArmKind::kKernels && static_cast<int>(tried.size()) >= kSimulated &&
          most < tried[kSimulated - 1].rate) {
        bound = std::max(bound, most);
        break;
      }
      const Problem problem = with_in_flight(batch->problem, in_flight);
      Candidate candidate = try_arm(problem, kind, terms_.effort);
      bound = std::max(bound, batch->requests / candidate.bound);
      if (candidate.plan.placements.empty()) continue;
      const double token = in_flight * candidate.plan.period / problem.phases.back().passes;
      if (token > terms_.token_seconds) continue;
      const double rate = batch->requests / candidate.plan.period;
      tried.push_back({batch, in_flight, std::move(candidate), rate});
      std::ranges::sort(tried, std::greater<>(), &Tried::rate);
    }
    Arm arm = best_of(kind, tried);
    arm.bound = bound;
    return arm;
  }

  struct Size {
    const Batch* batch;
    int in_flight;
    double most;  // rate that no plan of kernels exceeds
  };

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

  // By simulation, where there is one.
  [[nodiscard]] Arm best_of(ArmKind kind, const std::vector<Tried>& tried) const {
    Arm best;
    best.kind = kind;
    double best_rate = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(tried.size(), kSimulated); ++i) {
      const Tried& of = tried[i];
      const Problem problem = with_in_flight(of.batch->problem, of.in_flight);
      const std::vector<Share>& placements = of.candidate.plan.placements;
      double simulated = 0;
      if (terms_.simulated_rounds > 0 && placements.size() == 1) {
        simulated =
            of.batch->requests / simulated_period(problem, placements.front().placement, terms_.simulated_rounds);
      }
      const double rate = simulated > 0 ? std::min(simulated, of.rate) : of.rate;
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = arm_of(kind, of, simulated);
    }
    return best;
  }

  [[nodiscard]] Arm arm_of(ArmKind kind, const Tried& of, double simulated) const {
    const std::vector<Share>& placements = of.candidate.plan.placements;
    const auto number = static_cast<std::size_t>(of.batch - batches_.data());
    const auto rate_with = [&](const Batch& batch) {
      return batch.requests / period_of(with_in_flight(batch.problem, of.in_flight), placements);
    };
    Arm arm;
    arm.kind = kind;
    arm.fits = true;
    arm.rate = of.rate;
    arm.simulated = simulated;
    arm.low = rate_with(slow_[number]);
    arm.high = rate_with(fast_[number]);
    arm.requests = of.batch->requests;
    arm.in_flight = of.in_flight;
    arm.requests_in_memory = of.batch->requests * of.in_flight;
    arm.token_seconds = of.in_flight * of.candidate.plan.period / of.batch->problem.phases.back().passes;
    arm.memory = of.candidate.plan.memory;
    arm.placements = placements;
    return arm;
  }

  static Problem with_errors(const Problem& problem, int sign) {
    Problem result = problem;
    for (Kernel& kernel : result.kernels) {
      for (double& seconds : kernel.seconds) seconds *= 1 + sign * kernel.error;
    }
    return result;
  }

  static constexpr int kSimulated = 4;  // the best by resources, of which simulation chooses

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

Comparison compare(std::span<const Batch> batches, const Terms& terms) {
  TANGRAM_ASSERT(!batches.empty() && !terms.in_flight.empty());
  return Comparing(batches, terms).run();
}

}  // namespace tangram::disaggregate
