// Why a plan is as it is. Goes in: the plan, and the fleet it was made for. Comes out: what limits it, what each
// neighbour of it would take, and what more or fewer GPUs would bring; every figure by pricing or planning it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tangram/planner/plan.hpp"

namespace tangram::planner {

enum class Resource : std::uint8_t { kCompute, kMemoryBandwidth, kNodeLinks, kNetwork };

// What an alternative changes. Stages are counted along the first pipeline.
struct Faster {
  Resource resource;  ///< of all nodes, by a tenth
};
struct MoreMemory {
  std::string gpu_type;  ///< by a tenth
};
struct LayerMoved {
  int layer = 0;
  std::size_t cut = 0;  ///< behind this stage
  std::size_t to = 0;   ///< the stage that gets it
};
struct OtherStrategy {
  std::size_t stage = 0;
  cost::Strategy now;
  cost::Strategy other;
};
struct NodeAdded {
  std::string like;  ///< a node of the fleet
  std::string island_class;
};
struct IslandDropped {
  int island = 0;
  std::string island_class;
  std::size_t alike = 1;  ///< islands of the class that the plan uses
};
struct OtherPlan {
  std::string plan_id;
  std::size_t stages = 0;
  std::int64_t microbatch = 1;
  int moved = 0;  ///< GPUs with other work
  std::size_t gpus = 0;
};
struct RuleLifted {
  runtime::Rule rule;
};
/// All rules of the runtime at once: on paper, no runtime is without any.
struct RulesLifted {};
struct OptionChanged {
  std::string_view key;  ///< of the job
  std::string_view value;
};
struct OtherPlacement {
  compose::EncoderPlacement placement;
};
using Change = std::variant<Faster, MoreMemory, LayerMoved, OtherStrategy, NodeAdded, IslandDropped, OtherPlan,
                            RuleLifted, RulesLifted, OptionChanged, OtherPlacement>;

/// One thing changed, and the iteration time that gives; none where it does not work, with the reason.
struct Alternative {
  Change change;
  std::optional<Nanoseconds> iteration;
  std::string why_not;
};

/// The fullest part of a stage.
struct MemoryUse {
  int stage = 0;
  std::string gpu_type;
  plan::PartPrediction predicted;
  std::optional<plan::EncoderPrediction> encoders = {};  ///< colocated ones
  [[nodiscard]] double share() const { return predicted.peak_memory.as_double() / predicted.usable_memory.as_double(); }
  [[nodiscard]] std::int64_t room() const;  ///< more microbatches in flight that would fit
};

struct Explanation {
  Nanoseconds iteration;                 ///< of the plan now
  double time_limit = 0;                 ///< seconds that ended searches (PlanProvenance::time_limit)
  std::vector<Alternative> limits;       ///< the same plan with one thing a tenth faster; the most gain first. Not of
                                         ///< plans with colocated encoders, and neither are cuts, degrees and rules
  std::vector<MemoryUse> memory;         ///< fullest first
  std::vector<Alternative> more_memory;  ///< planned anew with a tenth more memory on a GPU type; the most gain first
  std::vector<Alternative> cuts;         ///< one layer to the other side of a cut
  std::vector<Alternative> degrees;      ///< the best other degrees of a stage
  /// Planned anew without one rule of the target, as it would run the plan then; the most gain first. Only rules that
  /// bear on the job and the fleet. It has what the target's own plans have: where nothing is faster, the plan remains.
  std::vector<Alternative> rules;
  /// The same plan with another value of one of the job's execution options; the most gain first. Only those that the
  /// job does not have and that change something.
  std::vector<Alternative> options;
  /// Of models with encoders, for no runtime in particular: planned anew with encoders elsewhere; the most gain first.
  std::vector<Alternative> placements;
  std::optional<Alternative> next_best;  ///< another plan of the same search
  std::vector<Alternative> more;         ///< planned anew with a node more of a class
  std::vector<Alternative> fewer;        ///< planned anew without one island of a class
};

/// Alternatives are simulated. A plan with colocated encoders has the times that it was written with, and is explained
/// by plans made anew: with encoders elsewhere, more memory, other nodes. Fails where the plan does not fit the fleet,
/// or the target refuses it.
[[nodiscard]] Expected<Explanation> explain(const plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                            const PlanOptions& options, const compose::ProgressCallback& progress);

}  // namespace tangram::planner
