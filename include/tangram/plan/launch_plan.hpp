// The launch plan (tangram.launch_plan/1): the written result, from which everything after planning works. Goes in: a
// composition with a fleet and a model, or a file. Comes out: a value with every rank and transfer written out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cost/colocated.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/model/model.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/parallelizer/tally.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::plan {

struct HostGpus {
  std::string host;
  std::vector<int> gpus;  ///< as numbered on the host
  bool operator==(const HostGpus&) const = default;
};

struct PlanIsland {
  int id = 0;
  std::string island_class;  ///< alias of its class
  cluster::GpuType device;
  std::vector<HostGpus> nodes;
  cluster::Link inside_member;
  cluster::Link between_members;
  cluster::Link between_islands;  ///< of the class; for a part that needs more members than an island has
  int gpus_per_member = 0;
  int members_per_island = 0;  ///< of the class, used by the plan or not
  Dollars price_per_gpu_hour{0};
  bool operator==(const PlanIsland&) const = default;
};

/// One of a stage's model chunks.
struct ChunkPrediction {
  Nanoseconds forward;
  Nanoseconds backward;
  Bytes activation;  ///< per microbatch that it holds
  bool operator==(const ChunkPrediction&) const = default;
};

/// Where chunks are interleaved, forward, backward, and activation are sums over the chunks, and in_flight counts
/// passes: a microbatch in one chunk.
struct PartPrediction {
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds gradient_sync;          ///< whole: inside the part, with replicas and other parts, between tied ends
  Nanoseconds gradient_sync_exposed;  ///< of that, what backward passes do not hide: of the stage, in all its parts
  Nanoseconds optimizer_step;
  Bytes static_memory;
  Bytes transient;
  Bytes activation;  ///< per in-flight microbatch
  /// static + transient + what activations take at their peak: in_flight * activation under 1F1B; under zero bubble
  /// what put_off.hpp of cost says.
  Bytes peak_memory;
  Bytes usable_memory;
  std::int64_t in_flight = 1;  ///< capped at M, at M v where v chunks are interleaved
  cost::Provenance provenance = cost::Provenance::kModelled;
  std::vector<ChunkPrediction> chunks = {};      ///< as the stage has them; none under 1F1B
  Nanoseconds weight_gradient = Nanoseconds(0);  ///< under zero bubble: of `backward`, what is put off
  Bytes put_off = Bytes(0);                      ///< and what a microbatch holds meanwhile
  bool operator==(const PartPrediction&) const = default;
};

/// What colocated encoders, all of them, take on a part's GPUs.
struct EncoderPrediction {
  Nanoseconds forward;   ///< of a lane's samples in one round, the slowest lane's
  Nanoseconds backward;  ///< of the same
  Nanoseconds gradient_sync;
  Nanoseconds gradient_sync_exposed;  ///< of that, what their backward passes do not hide
  Nanoseconds optimizer_step;
  Bytes static_memory;
  Bytes transient;
  Bytes held;        ///< activations of a lane's samples
  Bytes embeddings;  ///< of the first stage: what they made for a replica in one round, and its gradients
  [[nodiscard]] Bytes memory() const { return static_memory + transient + held + embeddings; }
  bool operator==(const EncoderPrediction&) const = default;
};

/// A stage on one island; a mixed stage has several.
struct Part {
  int island = 0;
  std::int64_t samples = 0;  ///< of each microbatch that is whole
  cost::Strategy strategy;
  int first_rank = 0;  ///< ranks [first_rank, first_rank + strategy.degrees.gpus())
  int members = 1;     ///< shape: members x gpus / members
  std::string parallelizer;
  std::string opaque;
  PartPrediction predicted;  ///< of the stage's own blocks; peak_memory is of all that its GPUs hold
  std::optional<EncoderPrediction> encoders = {};  ///< colocated ones
  /// Of the fullest replica: cost::Degrees says how samples are split.
  [[nodiscard]] std::int64_t samples_per_replica() const { return strategy.degrees.most_samples(samples); }
  bool operator==(const Part&) const = default;
};

struct Stage {
  int id = 0;
  int pipeline = 0;
  std::vector<model::BlockRange> chunks = {
      model::BlockRange{}};  ///< one under 1F1B, v in ascending order where chunks are interleaved
  bool embedding = false;
  bool head = false;
  std::vector<Part> parts;
  std::int64_t warmup = 0;  ///< forward passes (of any chunk) before the first backward: in_flight - 1
  /// Under zero bubble: microbatches that it holds beyond warmup + 1, as their weight gradients are put off.
  std::int64_t put_off = 0;

  /// Whether its backward passes leave weight gradients for later; without room for them they are whole.
  [[nodiscard]] bool puts_off() const;
  /// Blocks [first, last), between whose chunks other stages have theirs.
  [[nodiscard]] int first() const { return chunks.front().first; }
  [[nodiscard]] int last() const { return chunks.back().last; }
  /// Where the activation that it sends first leaves the model's chain: behind its first chunk.
  [[nodiscard]] int first_cut() const { return chunks.front().last; }
  [[nodiscard]] int block_count() const;
  /// Of its largest chunk.
  [[nodiscard]] int most_chunk_blocks() const;
  /// What each chunk costs is the same for equal ones.
  [[nodiscard]] std::vector<model::SliceSignature> signatures(const model::Model& model) const;
  /// Its blocks, ascending.
  [[nodiscard]] std::vector<int> blocks() const;
  bool operator==(const Stage&) const = default;
};

struct Pipeline {
  int id = 0;
  std::int64_t samples = 0;  ///< per iteration
  std::int64_t microbatch = 0;
  std::int64_t microbatches = 0;  ///< all whole but the last, which may have fewer samples
  std::vector<int> stages;        ///< ids, first to last
  /// Samples of the last one: the first ones of a microbatch. Who works on the others has nothing to do.
  [[nodiscard]] std::int64_t last_microbatch() const {
    const std::int64_t whole = microbatches - 1;
    return microbatch < 1 || whole > samples / microbatch ? 0 : samples - whole * microbatch;
  }
  [[nodiscard]] bool has_smaller_last() const { return last_microbatch() > 0 && last_microbatch() < microbatch; }
  bool operator==(const Pipeline&) const = default;
};

enum class BoundaryMode : std::uint8_t { kEqual, kFanIn, kFanOut, kOverlap };

/// What one rank sends another for one microbatch, forward; backward is the reverse. Half-open ranges; samples count
/// from 0 within the microbatch, seq within the sample.
struct Transfer {
  int src = 0;
  int dst = 0;
  std::int64_t sample_first = 0, sample_last = 0;
  std::int64_t seq_first = 0, seq_last = 0;
  Bytes bytes;
  bool operator==(const Transfer&) const = default;
};

struct Boundary {
  int from = 0;  ///< stage ids
  int to = 0;
  BoundaryMode mode = BoundaryMode::kEqual;
  cluster::Link link;   ///< per member, reduced to the shapes' shares: the price the search used
  int source_part = 0;  ///< of mixed stages, the parts whose members and GPUs that price counts
  int target_part = 0;
  Nanoseconds latency;
  Nanoseconds occupancy;
  std::vector<Transfer> transfers;
  bool operator==(const Boundary&) const = default;
};

struct Rank {
  int rank = 0;
  std::string host;
  int local_rank = 0;  ///< among the ranks of this job on the host, by gpu
  int gpu = 0;
  int island = 0;
  int stage = 0;
  int part = 0;
  int replica = 0;  ///< pipeline id
  int tp = 0, cp = 0, dp = 0, ep = 0, etp = 0, edp = 0;
  bool operator==(const Rank&) const = default;
};

struct IdleGpus {
  std::string island_class;
  int gpus = 0;
  std::string reason;
  bool operator==(const IdleGpus&) const = default;
};

struct Breakdown {  ///< of the critical stage, in seconds of the iteration
  double compute = 0;
  double bubble = 0;
  double exposed_sync = 0;
  double optimizer = 0;
  bool operator==(const Breakdown&) const = default;
};

/// What one's own runs say of the predicted iteration (tangram/discrepancy/discrepancy.hpp).
struct OwnRuns {
  double ratio = 1;      ///< what is to be expected over what is predicted
  double deviation = 0;  ///< standard deviation of the ratio's logarithm
  std::int64_t runs = 0;
  bool operator==(const OwnRuns&) const = default;
};

struct Predicted {
  Nanoseconds iteration;    ///< simulated
  Nanoseconds closed_form;  ///< under zero bubble: of its stages under 1F1B
  double tokens_per_s = 0;
  double mfu = 0;              ///< model FLOPs over the dense peak of the GPUs the plan uses
  double mfu_fleet = 0;        ///< over the dense peak of all GPUs of the fleet
  double cost_per_mtoken = 0;  ///< dollars; 0: no prices known
  int bottleneck_stage = 0;
  double bubble_fraction = 0;  ///< of the bottleneck stage
  Breakdown breakdown;
  std::optional<OwnRuns> own_runs = {};  ///< where plans were made with any
  /// As own runs say, if there are any.
  [[nodiscard]] double expected_s() const { return to_seconds(iteration) * (own_runs ? own_runs->ratio : 1); }
  bool operator==(const Predicted&) const = default;
};

struct TargetReason {
  std::string code;
  std::vector<int> stages;
  std::string text;
  bool operator==(const TargetReason&) const = default;
};
struct TargetVerdict {
  std::string target;
  bool ok = false;
  std::vector<TargetReason> reasons;
  bool operator==(const TargetVerdict&) const = default;
};

struct InputDigest {
  std::string name;  ///< "cluster", "model"
  std::string digest;
};

/// What a runtime would make of the job, by a look that may miss better plans.
struct RuntimeLook {
  std::string runtime;
  Nanoseconds iteration;  ///< simulated under its semantics, of a plan of its own; 0: none was found
  std::string why_not;    ///< then
  bool operator==(const RuntimeLook&) const = default;
};

/// An execution option that is not as the model file has it: the planner chose it, or an imported job says so.
struct ChosenOption {
  model::ExecutionOption option = model::ExecutionOption::kCudaGraphs;
  std::string value;           ///< of the plan's job
  std::optional<double> gain;  ///< share of the time that the same plan takes without it; none: it cannot run so
  bool operator==(const ChosenOption&) const = default;
};

/// Left out of plan_id and of comparisons.
struct PlanProvenance {
  std::string version;
  std::vector<InputDigest> inputs;
  std::vector<std::string> parallelizers;      ///< name and version
  std::vector<parallelizer::Tally> outsiders;  ///< what those from outside the program did
  std::int64_t states = 0;
  std::int64_t labels = 0;
  std::string space;   ///< JSON text of compose::Space
  std::string search;  ///< JSON text: what the plan was wanted for, what each level could give, what each cut removed
  std::string level;   ///< island level the plan was made on
  std::string objective = "throughput";  ///< what `optimal` speaks of: throughput, cost or gpus
  bool optimal = false;
  Nanoseconds search_bound;
  Nanoseconds relaxed_bound;
  double search_gap = 0;   ///< closed_form / search_bound - 1
  double relaxed_gap = 0;  ///< closed_form or, where that is less, the simulated iteration / relaxed_bound - 1
  double time_limit = 0;  ///< seconds after which the search was stopped, so that another run may find another plan; 0:
                          ///< no clock decided anything
  std::vector<ChosenOption> options;  ///< those that differ from the job's own
  std::vector<RuntimeLook> runs_on;   ///< of plans for no runtime in particular, where somebody looked
  std::string note;                   ///< why not optimal, restrictions that decided, re-ranking
};

/// Encoders on all GPUs of all pipelines, in turn with the language model, whose blocks alone the stages hold. The
/// ranks of a part are lanes of tp each, in their order.
struct ColocatedEncoders {
  struct Encoder {
    std::string module;
    cost::EncoderLayout layout;
    bool operator==(const Encoder&) const = default;
  };
  cost::EncoderTurns turns = cost::EncoderTurns::kThreePhases;
  std::vector<Encoder> encoders;  ///< as model::encoder_ranges() has them
  cluster::Link handover_link;    ///< slowest between the GPUs of a pipeline, per member, reduced to the shapes' shares
  cluster::Link sync_link;        ///< slowest between any two members of the plan, the same
  Nanoseconds gather;             ///< of one round: what encoders made, to the first stage
  Nanoseconds broadcast;          ///< of its gradients
  model::Model language;          ///< what the stages hold: follows from the model

  [[nodiscard]] bool each_microbatch() const { return turns == cost::EncoderTurns::kPerMicrobatch; }
};

/// Lanes of an encoder, and the samples of the fullest in one round.
struct EncoderLanes {
  std::int64_t of_pipeline = 0;
  std::int64_t of_plan = 0;
  std::int64_t samples = 0;
};

struct LaunchPlan {
  std::string plan_id;  ///< digest of the canonical body
  PlanProvenance provenance;
  std::string fleet_name;
  int fleet_gpus = 0;
  model::Model model;
  runtime::Target runtime = runtime::Target::kGeneric;  ///< whose semantics all predictions speak of
  /// Microbatches that go through a chunk in a row before the next chunk's turn; 0: chunks are not interleaved.
  std::int64_t group = 0;
  bool zero_bubble = false;  ///< weight gradients are put off
  std::optional<ColocatedEncoders> colocated;
  std::vector<PlanIsland> islands;
  std::vector<Pipeline> pipelines;
  std::vector<Stage> stages;
  std::vector<Boundary> boundaries;
  std::vector<Rank> ranks;
  std::vector<IdleGpus> idle;
  cost::ProfileSet profiles;  ///< the rows that the parts' times come from and the curves of their groups, no others
  Predicted predicted;
  std::vector<TargetVerdict> targets;

  /// What the pipelines train, whose blocks the stages count: the model, or its language model.
  [[nodiscard]] const model::Model& pipelined() const { return colocated ? colocated->language : model; }
  /// Of one of the colocated encoders; the pipelines' samples may differ by one: of the fullest.
  [[nodiscard]] EncoderLanes lanes_of(const cost::EncoderLayout& layout) const;
  /// Samples that a pipeline's encoders take before its language model has its turn: of the fullest pipeline.
  [[nodiscard]] std::int64_t round_samples() const;
  [[nodiscard]] bool is_interleaved() const { return group > 0; }
  [[nodiscard]] runtime::Schedule schedule() const {
    if (is_interleaved()) return runtime::Schedule::kInterleaved;
    return zero_bubble ? runtime::Schedule::kZeroBubble : runtime::Schedule::k1F1B;
  }
  /// Of its schedule; of 1F1B where the runtime knows no other.
  [[nodiscard]] runtime::Semantics semantics() const { return runtime::runtime_of(runtime).semantics_of(schedule()); }
  /// v: model chunks of a stage.
  [[nodiscard]] std::size_t chunks() const { return stages.empty() ? 1 : stages.front().chunks.size(); }
  /// Positions of a stage's chunks in the chain of its pipeline: chunk c of stage s of S stands at c S + s.
  [[nodiscard]] std::vector<std::size_t> places_of(const Stage& stage) const;
  /// Blocks on a stage's GPUs, as the model counts them: the encoders', where they are colocated, then its chunks.
  [[nodiscard]] std::vector<model::BlockRange> blocks_held(const Stage& stage) const;
  [[nodiscard]] const PlanIsland& island(int id) const { return at(islands, id); }
  [[nodiscard]] const Stage& stage(int id) const { return at(stages, id); }
  /// The part's i-th rank.
  [[nodiscard]] const Rank& rank(const Part& part, int i) const { return at(ranks, part.first_rank + i); }
};

/// Canonical JSON; sets plan_id from the body. Times are written in milliseconds with nanosecond digits (exact below
/// 2^50 ns, about 13 days), bytes whole; ranks, transfers and hosts stand on one line each.
[[nodiscard]] std::string write_plan(LaunchPlan& plan);

/// Digest of the canonical body: everything but plan_id and provenance.
[[nodiscard]] std::string plan_digest(const LaunchPlan& plan);

/// Strict: a plan file is an input like any other. Identifiers equal positions and every reference leads somewhere;
/// whether the plan makes sense is for check().
[[nodiscard]] Expected<LaunchPlan> read_plan(std::string text, std::string file);

}  // namespace tangram::plan
