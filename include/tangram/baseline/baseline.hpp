// Planners that Tangram is compared with, written anew from what their papers and programs are known to do. Goes in:
// what they read (input.hpp). Comes out: their plans, best first by their own claims, each of which becomes an ordinary
// launch plan that is checked and simulated like one of ours, and a label that says what is wrong with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/baseline/input.hpp"
#include "tangram/cost/strategy.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::baseline {

enum class Mode : std::uint8_t {
  kFaithful,  ///< as the published program is, its defects included
  kRepaired,  ///< the same method and search space without the defects
};
[[nodiscard]] std::string_view to_string(Mode mode);

enum class Label : std::uint8_t {
  kOk,
  kMisCosted,      ///< runs, but the planner's claim is of something else
  kOutOfMemory,    ///< by the memory model that judges all plans
  kLayersMissing,  ///< units of the model are in no stage
  kStageEmpty,     ///< a stage without units
  kOtherBatch,     ///< trains another number of samples than the job asks for
  kInexpressible,  ///< no launch plan says it: a replica over two GPU types, a stage of the head alone
};
[[nodiscard]] std::string_view to_string(Label label);  ///< "ok", "mis-costed", "out of memory", ...

/// `tp` GPUs of one kind that hold the whole stage.
struct Replica {
  int kind = 0;
  int tp = 1;
  std::int64_t samples = 1;  ///< of each microbatch; 0: it idles
};

struct DraftStage {
  int first = 0;  ///< units [first, last)
  int last = 0;
  std::vector<Replica> replicas;
};

struct DraftPipeline {
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  std::vector<DraftStage> stages;
};

/// A plan in its planner's terms.
struct Draft {
  std::vector<DraftPipeline> pipelines;
  double claimed = 0;  ///< seconds of an iteration, by the planner
  cost::Degrees common;
  cost::MemoryPolicy policy;  ///< kFull: of all blocks
  Label label = Label::kOk;   ///< what can be told without a launch plan
  std::string reason;
};

/// Counts, never seconds, so that results do not depend on the machine.
struct Budget {
  std::int64_t plans = 100'000;    ///< examined
  std::int64_t steps = 5'000'000;  ///< of a dynamic program
  std::int64_t kept = 5'000;       ///< of those costed, the best by the planner's claim
};

struct Effort {
  std::int64_t layouts = 0;   ///< what the planner enumerates first: groups of GPUs with a batch, degrees, ...
  std::int64_t examined = 0;  ///< strategies tried on them
  std::int64_t costed = 0;    ///< of these, given a time by the planner
  bool cut = false;           ///< the budget ended the enumeration
};

struct Proposals {
  std::vector<Draft> drafts;  ///< best first by the planner's claim
  Effort effort;
  std::vector<std::string> notes;  ///< what the planner was not given, and why
};

struct PlannerInfo {
  std::string_view name;
  std::string_view summary;
  std::vector<std::string_view> lacks;  ///< techniques outside its search space, as --forbid names them
};

class BaselinePlanner {
 public:
  virtual ~BaselinePlanner() = default;
  [[nodiscard]] virtual const PlannerInfo& info() const = 0;
  [[nodiscard]] virtual Proposals propose(const PlannerInput& input, Mode mode, const Budget& budget) const = 0;
};

[[nodiscard]] std::span<const std::string_view> planner_names();
/// Null: there is none of this name.
[[nodiscard]] std::unique_ptr<BaselinePlanner> make_planner(std::string_view name);

/// A draft after judgement.
struct Candidate {
  std::int64_t rank = 1;  ///< in the planner's order
  double claimed = 0;
  Label label = Label::kOk;
  std::string reason;
  std::string text;                      ///< stages in short, for people
  std::optional<plan::LaunchPlan> plan;  ///< simulated; where there is one
  [[nodiscard]] bool runs() const { return plan && (label == Label::kOk || label == Label::kMisCosted); }
};

/// What judging shares.
struct Judge {
  const cluster::Fleet& fleet;
  const cluster::IslandHierarchy& hierarchy;
  const model::Model& model;
  const cost::ProfileSet* profiles = nullptr;
  FlopsPerSecond fleet_peak{0};
  runtime::Target runtime =
      runtime::Target::kGeneric;  ///< whose semantics times are of, whether or not it runs the plan
};

[[nodiscard]] Candidate judge(const Draft& draft, std::int64_t rank, const PlannerInput& input, const Judge& by);

/// A launch plan of whatever origin for this fleet and model. Its claim is the iteration it was written with.
[[nodiscard]] Candidate judge(plan::LaunchPlan plan, const Judge& by);

struct Verdict {
  std::vector<Candidate> judged;  ///< the planner's first, and those up to the first that runs
  std::int64_t left = 0;          ///< drafts behind them that were not looked at
  [[nodiscard]] const Candidate* reported() const { return judged.empty() ? nullptr : &judged.front(); }
  [[nodiscard]] const Candidate* usable() const {
    return judged.empty() || !judged.back().runs() ? nullptr : &judged.back();
  }
  /// Of the usable one.
  [[nodiscard]] const plan::LaunchPlan* plan() const {
    const Candidate* candidate = usable();
    return candidate != nullptr && candidate->plan ? &*candidate->plan : nullptr;
  }
};

/// As a user would who tries a ranked list from its top: the first plan that runs is taken. At most `most` are tried.
[[nodiscard]] Verdict first_usable(const Proposals& proposals, const PlannerInput& input, const Judge& by,
                                   std::int64_t most = 5000);

}  // namespace tangram::baseline
