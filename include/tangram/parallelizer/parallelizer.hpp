// The narrow interface behind which heterogeneity ends. Goes in: queries "best ways to run this slice on this shape".
// Comes out: for each a set of one-stage partial plans, never one winner. Built-in and outside parallelizers are the
// same to the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/cost/stage.hpp"

namespace tangram::parallelizer {

/// What a runtime demands of a stage's strategy, beside the techniques that are allowed. The default demands nothing.
struct Demands {
  /// These alone; expert degrees count in slices with experts. With whole_modules, those of all but encoders, whose dp
  /// and this one divide.
  std::optional<cost::Degrees> degrees = std::nullopt;
  std::optional<cost::RecomputeMode> recompute = std::nullopt;  ///< this alone; kFull: of all blocks
  bool sequence_parallel = false;                               ///< wherever tp > 1
  bool zero1 = false;                                           ///< wherever there is something to shard over
  bool whole_stage_experts = false;  ///< ep > 1 only with ep x etp over all GPUs of a stage, but the first stage's
  bool whole_modules = false;        ///< each encoder is one stage, without other blocks
  bool encoders_together = false;    ///< one stage has all encoders
  bool alike = false;  ///< no mixture: one ZeRO stage, one recompute mode (in full also of a stage's first blocks)
  bool whole_recompute = false;  ///< in full only of all blocks
  bool power_of_two_tp = false;  ///< of every stage
  int tp_at_ends = 0;            ///< tp of the stages with embedding and head; 0: any
  bool equal_samples = false;    ///< of every microbatch all replicas of a stage get equally many

  bool operator==(const Demands&) const = default;
};

/// Whether a slice can only have plans that its parts have: the demands are the same of all slices.
[[nodiscard]] bool are_inherited(const Demands& demands);

/// Whether slices of the same blocks can have other plans where they have the model's embedding or head.
[[nodiscard]] bool depend_on_ends(const Demands& demands);

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
  /// Plans whose forward and backward take longer are of no use to the caller and may be left out. Depends on the query
  /// and on what was found before it was made, never on other answers to the same batch.
  Nanoseconds upper_bound = Nanoseconds::max();
};

/// One way to run the slice as one stage.
struct PartialPlan {
  cost::Strategy strategy;
  cost::StageCost cost;
  std::int64_t n_max = 0;    ///< most microbatches in flight that fit, at least 1, uncapped
  std::string parallelizer;  ///< who said so
  std::string opaque;        ///< returned verbatim to the exporter; empty for built-ins
};

/// kInfeasible and kUnsupported hold for every slice that contains the query's, too; kFailed says nothing.
enum class OutcomeStatus : std::uint8_t { kOk, kInfeasible, kUnsupported, kFailed };

/// Why a query has no answer, though there may be one.
enum class FailureKind : std::uint8_t {
  kUnavailable,  ///< never got as far as being asked: not installed, ended while starting
  kCrashed,      ///< ended, twice, without an answer
  kProtocol,     ///< said what the protocol does not know
  kRefused,      ///< answered with an error of its own
  kTimedOut,     ///< no answer before the deadline: the only kind that depends on a clock
  kGivenUp,      ///< not asked any more after other failures
  kNotCached     ///< only the cache was to be asked, and it has no answer
};
[[nodiscard]] std::string_view to_string(FailureKind kind);  ///< "unavailable", "crashed", ...

struct Failure {
  FailureKind kind = FailureKind::kCrashed;
  std::string message;
  std::string output;  ///< the last of what it printed; for people, never part of a plan
};

/// A plan that an outside parallelizer gave and that did not pass its re-check.
struct Rejection {
  std::string code;     ///< stable: "wrong-blocks", "out-of-memory", ...
  std::string message;  ///< this plan's numbers
};

/// How what a parallelizer claims compares with what is recomputed; empty where it claims nothing.
struct ClaimRange {
  double least = 0;  ///< claimed / recomputed
  double most = 0;
  bool operator==(const ClaimRange&) const = default;
};

struct Outcome {
  OutcomeStatus status = OutcomeStatus::kOk;
  /// No two equal, none dominated in (forward + backward, forward, gradient_sync, optimizer_step,
  /// min(n_max, max_in_flight)), ascending in this order: left out is what no pipeline with `max_in_flight` or fewer in
  /// flight needs.
  std::vector<PartialPlan> plans;
  std::string message;                ///< kUnsupported, kFailed, and what outside parallelizers say: why not
  Bytes shortage;                     ///< kInfeasible for memory: how much per GPU the leanest plan lacks
  std::optional<Failure> failure;     ///< kFailed
  std::vector<Rejection> rejected;    ///< by outside parallelizers, in their order
  std::optional<ClaimRange> claimed;  ///< forward and backward of the plans accepted
};

struct ParallelizerInfo {
  std::string name;
  std::string version;
  bool deterministic = true;
  bool built_in = true;       ///< false: its answers are re-checked and its failures counted
  bool modelled = false;      ///< its costs are cost::stage_cost's, at degrees of degrees.hpp: bounds may count on it
  std::string identity = {};  ///< of an outside one: another where its answers may be; empty: nobody can tell
};

class Parallelizer {
 public:
  virtual ~Parallelizer() = default;
  [[nodiscard]] virtual const ParallelizerInfo& info() const = 0;
  /// One outcome per query, in the same order. Thread-safe.
  [[nodiscard]] virtual std::vector<Outcome> solve(std::span<const Query> queries) const = 0;
};

/// Exhaustive enumeration for one stage: tp x sp x cp x ep x etp x dp (degrees.hpp) x ZeRO, its groups x recompute, as
/// Megatron-LM's users do by hand. O(strategies) per query, of the numbers of recomputed blocks only those that change
/// n_max; degrees are costed once for queries of equal shape, samples and techniques, and remembered for a while with
/// what was found for their slices. Plans above a query's upper bound are left out. Runs on the caller's oneTBB
/// threads; the outcomes depend neither on how many there are nor on what was asked before. Of equal plans the one with
/// the fewest techniques is returned. kUnsupported: no degrees suit shape, samples and model. Measured times of
/// `profiles` take the place of modelled ones. Both arguments must outlive the parallelizer.
[[nodiscard]] std::unique_ptr<Parallelizer> make_enumerator(const model::Model& model,
                                                            const cost::ProfileSet* profiles = nullptr);

/// Mixtures: what the enumerator chooses for a stage is chosen layer by layer, at degrees that hold for the stage. For
/// each of 1, 2, ... max_in_flight microbatches in flight the fastest way of all to have so many: never slower than the
/// enumerator's, of whose slower plans with less synchronisation or a shorter forward pass it has none. To be asked
/// beside it: then the frontier is the union. The rest as make_enumerator, but where runtimes treat the blocks of a
/// stage alike: there the answer is the enumerator's.
[[nodiscard]] std::unique_ptr<Parallelizer> make_layerwise(const model::Model& model,
                                                           const cost::ProfileSet* profiles = nullptr);

}  // namespace tangram::parallelizer
