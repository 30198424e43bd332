// Why a plan is as it is. Goes in: the plan, and the fleet it was made for. Comes out: what limits it, what each
// neighbour of it would take, and what more or fewer GPUs would bring; every figure by pricing or planning it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planning.hpp"
#include "terminal.hpp"

namespace tangram::app {

/// One thing changed, and the iteration time that gives; none where it does not work, with the reason.
struct Alternative {
  std::string what;
  std::optional<Nanoseconds> iteration;
  std::string why_not;
};

struct MemoryUse {
  int stage = 0;
  double share = 0;  ///< peak of usable
  std::int64_t in_flight = 1;
  std::int64_t room = 0;  ///< more microbatches that would fit
};

struct Explanation {
  Nanoseconds iteration;                 ///< of the plan now
  std::vector<MemoryUse> memory;         ///< fullest first
  std::vector<Alternative> limits;       ///< the same plan with one thing a tenth faster
  std::vector<Alternative> cuts;         ///< one layer to the other side of a cut
  std::vector<Alternative> degrees;      ///< the best other degrees of a stage
  std::optional<Alternative> next_best;  ///< another plan of the same search
  std::vector<Alternative> more;         ///< planned anew with a node more of a GPU type
  std::vector<Alternative> fewer;        ///< planned anew without one island of a class
};

/// Alternatives are simulated. Fails where the plan does not fit the fleet.
[[nodiscard]] Expected<Explanation> explain(const plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                            const PlanningOptions& options, const compose::ProgressCallback& progress);

[[nodiscard]] std::string explanation_for_people(const plan::LaunchPlan& plan, const Explanation& explanation,
                                                 const Terminal& terminal);

/// tangram.explanation/1
[[nodiscard]] nlohmann::ordered_json explanation_json(const plan::LaunchPlan& plan, const Explanation& explanation);

}  // namespace tangram::app
