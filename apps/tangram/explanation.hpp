// Why a plan is as it is. Goes in: the plan, and the fleet it was made for. Comes out: what limits it, what each
// neighbour of it would take, and what more or fewer GPUs would bring; every figure by pricing or planning it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planning.hpp"

namespace tangram::app {

/// One thing changed, and the iteration time that gives; none where it does not work, with the reason.
struct Alternative {
  std::string what;  ///< for people
  std::string of;    ///< what was changed, for programs: "compute", "stage 3", a GPU type, a class
  std::optional<Nanoseconds> iteration;
  std::string why_not;
};

/// The fullest part of a stage.
struct MemoryUse {
  int stage = 0;
  std::string gpu_type;
  plan::PartPrediction predicted;
  [[nodiscard]] double share() const { return predicted.peak_memory.as_double() / predicted.usable_memory.as_double(); }
  [[nodiscard]] std::int64_t room() const;  ///< more microbatches in flight that would fit
};

struct Explanation {
  Nanoseconds iteration;                 ///< of the plan now
  std::vector<Alternative> limits;       ///< the same plan with one thing a tenth faster; the most gain first
  std::vector<MemoryUse> memory;         ///< fullest first
  std::vector<Alternative> more_memory;  ///< planned anew with a tenth more memory on a GPU type; the most gain first
  std::vector<Alternative> cuts;         ///< one layer to the other side of a cut
  std::vector<Alternative> degrees;      ///< the best other degrees of a stage
  std::optional<Alternative> next_best;  ///< another plan of the same search
  std::vector<Alternative> more;         ///< planned anew with a node more of a class
  std::vector<Alternative> fewer;        ///< planned anew without one island of a class
};

/// Alternatives are simulated. Fails where the plan does not fit the fleet, or the target refuses it.
[[nodiscard]] Expected<Explanation> explain(const plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                            const PlanningOptions& options, const compose::ProgressCallback& progress);

}  // namespace tangram::app
