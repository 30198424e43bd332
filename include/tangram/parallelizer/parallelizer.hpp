// The narrow interface behind which heterogeneity ends. Goes in: queries "best ways to run this slice on this shape".
// Comes out: for each a set of one-stage partial plans, never one winner. Built-in and outside parallelizers are the
// same to the caller (interfaces.md section 6).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tangram/cost/stage.hpp"

namespace tangram::parallelizer {

/// What a runtime demands of a stage's strategy, beside the techniques that are allowed. The default demands nothing.
struct Demands {
  std::optional<cost::Degrees> degrees = std::nullopt;  ///< these alone; expert degrees count in slices with experts
  std::optional<cost::RecomputeMode> recompute = std::nullopt;  ///< this alone; kFull: of all blocks
  bool sequence_parallel = false;                               ///< wherever tp > 1
  bool zero1 = false;                                           ///< wherever there is something to shard over
  bool whole_stage_experts = false;  ///< ep > 1 only with ep x etp over all GPUs of a stage, but the first stage's
  bool whole_modules = false;        ///< encoders (blocks that are not causal) are one stage, without decoder blocks
  int tp_at_ends = 0;                ///< tp of the stages with embedding and head; 0: any

  bool operator==(const Demands&) const = default;
};

/// Whether a slice, or these degrees for it, are what is demanded.
[[nodiscard]] bool admits(const Demands& demands, const model::Model& model, const model::SliceSignature& slice);
[[nodiscard]] bool admits(const Demands& demands, const model::Model& model, const model::SliceSignature& slice,
                          const cost::Degrees& degrees);

struct Query {
  model::SliceSignature slice;
  cluster::DeviceShape shape;
  int samples = 1;                 ///< of one microbatch, over all replicas of the stage
  std::int64_t max_in_flight = 1;  ///< more than this is never needed: min(M, blocks of the model)
  model::Techniques allow;
  Demands demands{};  // NOLINT(readability-redundant-member-init): g++ and clang warn of every query without
};

/// One way to run the slice as one stage.
struct PartialPlan {
  cost::Strategy strategy;
  cost::StageCost cost;
  std::int64_t n_max = 0;    ///< most microbatches in flight that fit, at least 1, uncapped
  std::string parallelizer;  ///< who said so
  std::string opaque;        ///< returned verbatim to the exporter; empty for built-ins
};

enum class OutcomeStatus : std::uint8_t { kOk, kInfeasible, kUnsupported, kFailed };

struct Outcome {
  OutcomeStatus status = OutcomeStatus::kOk;
  /// No two equal, none dominated in (forward + backward, forward, gradient_sync, optimizer_step,
  /// min(n_max, max_in_flight)), ascending in this order: left out is what no pipeline with `max_in_flight` or fewer in
  /// flight needs.
  std::vector<PartialPlan> plans;
  std::string message;  ///< why not, when there are no plans
  Bytes shortage;       ///< kInfeasible for memory: how much per GPU the leanest plan lacks
};

struct ParallelizerInfo {
  std::string name;
  std::string version;
  bool deterministic = true;
};

class Parallelizer {
 public:
  virtual ~Parallelizer() = default;
  [[nodiscard]] virtual const ParallelizerInfo& info() const = 0;
  /// One outcome per query, in the same order. Thread-safe.
  [[nodiscard]] virtual std::vector<Outcome> solve(std::span<const Query> queries) const = 0;
};

/// Exhaustive enumeration for one stage: tp x sp x cp x ep x etp x dp (degrees.hpp) x ZeRO x recompute, as
/// Megatron-LM's users do by hand. O(strategies) per query, of the numbers of recomputed blocks only those that change
/// n_max; degrees are costed once per call for queries of equal shape, samples and techniques. Runs on the caller's
/// oneTBB threads; the outcomes do not depend on how many. Of equal plans the one with the fewest techniques is
/// returned. kUnsupported: no degrees suit shape, samples and model. Measured times of `profiles` take the place of
/// modelled ones. Both arguments must outlive the parallelizer.
[[nodiscard]] std::unique_ptr<Parallelizer> make_enumerator(const model::Model& model,
                                                            const cost::ProfileSet* profiles = nullptr);

}  // namespace tangram::parallelizer
