// Proof that a written plan computes what one process computes. Goes in: a launch plan. Comes out: what was compared,
// and what does not hold. Ranks run the plan's structure on a small model in fp64: its stages, blocks, degrees, ZeRO,
// recompute, boundary transfers as listed, 1F1B with its warm-ups and chunks, its batch shares. Colocated encoders run
// in their own lanes on the same ranks, in turn with the language model, each lane on an equal share of the samples of
// a turn; what they make goes to the replicas of the first stage, its gradients come back. Frozen weights must stay as
// they are to the last bit. Nothing of the search is used.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/execute/finding.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::execute {

/// Relative to the largest value of the matrix that is compared.
inline constexpr double kTolerance = 1e-9;

/// A mistake put in on purpose, to see that it is found.
enum class Fault : std::uint8_t {
  kSwappedRanks,
  kDroppedTransfer,
  kGradientScale,
  kMissingAllReduce,
  kLayerRange,
  kMissingMicrobatch,
  kSwappedChunks,
  kMissingWraparound,
  kWrongGroup,
  kDroppedWeightGradient,
  kMissingReplicaSum,
  // Of colocated encoders.
  kEncoderScale,
  kReversedEmbeddings,
  kReversedGradients,
  kWrongStage,
  kOwnNorms,
  kFrozenStep,
  kDroppedTextOnly,
  kFreedEarly,
};

struct FaultName {
  Fault fault = Fault::kSwappedRanks;
  std::string_view name;     ///< "swapped-ranks"
  std::string_view meaning;  ///< for help
  std::string_view code;     ///< of the finding that names it
};

[[nodiscard]] std::span<const FaultName> fault_names();

/// What of the plan was executed at a smaller size.
struct Shrunk {
  std::string what;  ///< "microbatches"
  std::int64_t kept = 0;
  std::int64_t of = 0;
};

/// The largest difference from one process, and where.
struct Worst {
  double error = 0;  ///< relative
  std::string name;  ///< "block 3 query"; empty: all are equal to the last bit
  int rank = 0;
};

struct StageReport {
  int stage = 0;
  int pipeline = 0;
  bool executed = false;       ///< false: another pipeline that is alike was
  std::int64_t in_flight = 0;  ///< counted over the plan's whole schedule, and again while executing
  std::int64_t planned = 0;    ///< what the plan says
  int ranks = 0;               ///< executed
  Worst gradient;
};

/// A colocated encoder.
struct EncoderReport {
  std::string module;
  bool trained = false;
  int lanes = 0;                  ///< executed
  std::int64_t held = 0;          ///< samples whose activations a lane kept at once, counted; of the fullest
  std::int64_t planned_held = 0;  ///< all samples of one of its turns, where there is a backward pass
  Worst gradient;
};

struct Report {
  std::vector<Finding> findings;
  bool executed = false;  ///< false: what was found does not let an iteration run to its end
  double loss = 0;
  double reference_loss = 0;
  double loss_error = 0;
  Worst gradient;
  Worst weight;               ///< after one step of SGD
  std::int64_t matrices = 0;  ///< of the model, each compared on every rank that holds any of it
  std::int64_t messages = 0;
  std::int64_t collectives = 0;
  std::vector<StageReport> stages;
  std::vector<EncoderReport> encoders;
  std::vector<Shrunk> shrunk;
  [[nodiscard]] bool ok() const { return findings.empty(); }
};

struct VerifyOptions {
  std::optional<Fault> fault;
  bool check_structure = true;  ///< false: execute whatever the plan says, to see that execution notices by itself
};

/// A diagnostic where the fault has nothing to act on, or the plan is too large to execute at any size.
[[nodiscard]] Expected<Report> verify(const plan::LaunchPlan& plan, const VerifyOptions& options = {});

}  // namespace tangram::execute
