// Kernels against every simpler way to share GPUs. Goes in: one application at several sizes of micro-batches, and what
// all arms have in common: requests or memory, how long a token may take. Comes out: the rate of each arm, its bound,
// how sure that is, and which arm to run by which rule.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/disaggregate/problem.hpp"
#include "tangram/disaggregate/solve.hpp"
#include "tangram/disaggregate/timeline.hpp"
#include "tangram/disaggregate/usage.hpp"

namespace tangram::disaggregate {

/// How GPUs of several classes share the work, coarsest first. Shared: a fraction of the requests is placed otherwise
/// than the rest, so that groups of kernels run on several classes; without, every group runs on one.
enum class ArmKind : std::uint8_t {
  kOneGpu,        ///< the whole model on one GPU, the best
  kReplicas,      ///< the whole model on every GPU that holds it
  kLayers,        ///< a pipeline: each class has a range of layers
  kPhases,        ///< prefill and decode on classes of their own
  kPhasesShared,  ///< the same, and whole requests overflow
  kBlocks,        ///< attention and feed-forward on classes of their own, the same in all phases
  kBlocksShared,
  kPhaseBlocks,  ///< attention and feed-forward of each phase
  kPhaseBlocksShared,
  kKernels,  ///< every kernel by itself
};
inline constexpr int kArmCount = 10;
[[nodiscard]] std::string_view to_string(ArmKind kind);

/// One size of micro-batches. Its kernels take the seconds that they take at that size.
struct Batch {
  int requests = 1;  ///< of a micro-batch; each gets through one round in a period
  Problem problem;   ///< in_flight of its phases is not read
};

/// Equal terms.
struct Terms {
  int most_requests = 0;                      ///< in memory, of all micro-batches; 0: as many as memory holds
  std::vector<int> in_flight = {1, 2, 3, 4};  ///< micro-batches that split arms may have under way
  double token_seconds = kNever;  ///< most seconds from one pass of the last phase to the next, for a request
  int simulated_rounds = 60;      ///< 0: rates are those that no resource forbids
  SolverEffort effort;
};

struct Arm {
  ArmKind kind = ArmKind::kOneGpu;
  bool fits = false;     ///< memory and terms allow it
  double rate = 0;       ///< requests a second through one round, as resources allow; of decode alone: tokens
  double bound = 0;      ///< no plan of the arm has a higher rate
  double simulated = 0;  ///< the rate in an event simulation; 0: not simulated (GPUs that each run alone)
  double low = 0;        ///< `rate` where every kernel takes longer by two and a half times its error
  double high = 0;       ///< and shorter
  int requests = 0;      ///< of a micro-batch; of replicas, of all together
  int in_flight = 1;
  int requests_in_memory = 0;
  double token_seconds = 0;
  std::vector<double> memory;     ///< bytes of one GPU of each class
  std::vector<Share> placements;  ///< one, or several of a shared arm; of replicas one for each class that takes part
  std::vector<int> replica_requests;  ///< of replicas and one GPU: in memory of one GPU, by placement
};

/// What decided.
enum class Rule : std::uint8_t {
  kNothingFits,
  kMemory,                ///< the model fits too few GPUs whole: kernels make memory placeable
  kRatiosDiffer,          ///< the GPUs' ratio differs from kernel to kernel by more than the times may be wrong
  kWithinErrors,          ///< the gain of kernels is smaller than the errors of their times
  kWeightsPerMicroBatch,  ///< each micro-batch reads all weights; equal requests make micro-batches small
  kLinks,                 ///< without links kernels would be ahead
  kUniformRatios,         ///< even without links a finer split is worth nothing
};
[[nodiscard]] std::string_view to_string(Rule rule);

struct Decision {
  Rule rule = Rule::kNothingFits;
  ArmKind arm = ArmKind::kOneGpu;      ///< to run
  ArmKind simpler = ArmKind::kOneGpu;  ///< the best of the others, which kernels are held against
  double number = 0;  ///< kernels over that arm: of kLinks without links, of kWeightsPerMicroBatch in one micro-batch
  std::string why;    ///< one sentence
};

struct Comparison {
  std::vector<Arm> arms;  ///< by ArmKind
  Decision decision;

  [[nodiscard]] const Arm& arm(ArmKind kind) const { return arms[static_cast<std::size_t>(kind)]; }
};

/// Of batches that check() accepts, all with the same classes, phases and kernels but for their seconds and bytes.
[[nodiscard]] Comparison compare(std::span<const Batch> batches, const Terms& terms);

/// One arm of it.
[[nodiscard]] Arm arm_of(std::span<const Batch> batches, ArmKind kind, const Terms& terms);

}  // namespace tangram::disaggregate
