// What starts a launch plan, and how it runs it. Goes in: a name. Comes out: the runtime's row: its execution
// semantics, which the search, the check and the simulator take from here, and what it can not run.
//
// Megatron-LM: megatron/core/pipeline_parallel/schedules.py, forward_backward_pipelining_without_interleaving, sends
// and receives by p2p_communication.py, which waits for every transfer. With interleaving,
// forward_backward_pipelining_with_interleaving under --overlap-p2p-communication-warmup-flush posts its receives ahead
// and waits for gradients where it needs them, but for what a forward pass sends at once: its output is freed behind it
// (deallocate_pipeline_outputs, which training always sets). FlagScale runs the same schedule with transfers
// of its own (flagscale/train/hetero/p2p_communication.py), which it waits for as well. MIMO runs 1F1B over several
// modules (megatron/core/models/mimo), by multimodule_communicator.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/enum_set.hpp"

namespace tangram::runtime {

enum class Target : std::uint8_t {
  kGeneric,    ///< no demands: what could be run
  kMegatron,   ///< one set of degrees, one ZeRO stage, one recompute mode for all stages
  kFlagscale,  ///< degrees differ; no cp, sp with tp, ZeRO-1, experts over whole stages, one GPU type a host
  kMimo,       ///< as Megatron-LM, without cp, encoders and decoder in stages of their own
};

/// In which order a stage runs its passes.
enum class Schedule : std::uint8_t {
  k1F1B,         ///< one forward, one backward, over one range of blocks a stage
  kInterleaved,  ///< 1F1B over several model chunks a stage (Narayanan et al., arXiv 2104.04473, section 2.2)
  kZeroBubble,   ///< 1F1B whose weight gradients wait for gaps (ZB-H1, Qi et al., arXiv 2401.10241, section 2)
};

/// What a stage does while its transfers are under way.
enum class Transfers : std::uint8_t {
  kOverlapped,  ///< a pass starts once its executor is free and its input there
  /// A stage waits until what it sends is taken and what it expects is there, a send and a receive at a time where both
  /// are due.
  kBlocking,
  /// After a forward pass a stage waits until its output has been received. It is received ahead of the pass that needs
  /// it, and gradients are under way beside passes.
  kForwardBlocking,
};

/// Forward passes of a stage before its first backward pass.
enum class Warmup : std::uint8_t {
  kFree,  ///< as many as memory holds
  /// S - 1 - s on stage s of S; 2 (S - 1 - s) + (v - 1) G of any chunk where v chunks take the microbatches in groups
  /// of G (Narayanan et al., arXiv 2104.04473, section 2.2).
  kClassic,
};

struct Semantics {
  Transfers transfers = Transfers::kOverlapped;
  Warmup warmup = Warmup::kFree;
  bool operator==(const Semantics&) const = default;
};

/// What a runtime demands of every plan, or has no means for. Each by itself can be lifted, to see what it costs.
enum class Rule : std::uint8_t {
  kSameDegrees,       ///< one set of degrees for all stages (but those of whole encoders)
  kSameRecompute,     ///< one recompute mode for all stages
  kAlikeBlocks,       ///< within a stage: one ZeRO stage, one recompute mode
  kSequenceParallel,  ///< wherever tp > 1, if the job allows it
  kTpOnlyWithSp,      ///< no tp where the job forbids sequence parallelism
  kZero1,             ///< wherever there is something to shard over, and no other ZeRO stage
  kNoContextParallel,
  kNoSelectiveRecompute,
  kNoMixedStages,
  kEqualSamples,  ///< of every microbatch all replicas of a stage get equally many
  kOneTypeAHost,
  kSameTpAtEnds,      ///< of a model whose embeddings are tied
  kExpertsOverStage,  ///< experts are spread over all ranks of a stage, those of all equal pipelines
  kPowerOfTwoTp,
  kWholeEncoders,   ///< an encoder is one stage, with degrees of its own
  kRecomputeAlone,  ///< nothing is recomputed that graphs or exchanges beside passes have a part of
  kContextKernels,  ///< cp as Transformer Engine has it: no windows around a ring, no heads repeated for an all-to-all
  kOverlapInterleaved,  ///< exchanges of experts run beside passes of interleaved chunks, or of a single stage
  kBlockingTransfers,   ///< lifted: overlapped; the warm-up stays
  kSchedule,            ///< blocking transfers and the classic warm-up. Lifted: overlapped, free
};

using RuleSet = EnumSet<Rule>;

/// What of a job's execution options (model::Job) a runtime has: beside kernels that the host issues one by one, and
/// exchanges of experts all to all, which passes wait for.
struct ExecutionOptions {
  bool cuda_graphs = false;
  bool expert_dispatch = false;    ///< DeepEP and HybridEP
  bool gather_overlap = false;     ///< parameters of ZeRO-1 and 2 gathered beside the next forward pass
  bool gradient_bucket = false;    ///< parameters whose gradients are reduced together, as the job says
  bool expert_overlap = false;     ///< exchanges of experts beside the passes of another microbatch
  bool narrow_parameters = false;  ///< kept and gathered in 8 or 4 bits
  bool transposes = false;         ///< weights in 8 bits transposed by each backward pass
  bool narrow_gates = false;       ///< gate and up kept in 8 bits
  bool wide_layers = false;        ///< layers at either end in 16 bits
  bool precision_aware = false;    ///< the optimizer that reads gradients as they are
  bool optimizer_offload = false;  ///< parameters that the host steps
  bool offload = false;            ///< inputs of modules in the host's memory between forward and backward
  bool packing = false;            ///< attention inside each of the sequences that a sample is packed of
};

struct Runtime {
  Target target = Target::kGeneric;
  std::string_view name;                      ///< as plans and the command line have it
  std::string_view title;                     ///< as people know it
  Semantics semantics = {};                   ///< of 1F1B
  std::optional<Semantics> interleaved = {};  ///< of kInterleaved; none: it has no such schedule
  bool zero_bubble = false;                   ///< whether it has kZeroBubble, with the semantics of 1F1B
  ExecutionOptions options = {};
  bool takes_options = false;  ///< as arguments, which its export writes: a planner may choose them
  bool in_place_loss = false;  ///< its loss turns one copy of the logits in fp32 into softmax and gradient
  RuleSet rules = {};
  std::string_view in_words = {};  ///< of its rules, for compose::Space::rules; empty: it has none

  [[nodiscard]] bool has(Rule rule) const { return rules.has(rule); }
  /// The runtime as it would be without this rule.
  [[nodiscard]] Runtime without(Rule rule) const;

  [[nodiscard]] bool knows(Schedule schedule) const {
    switch (schedule) {
      case Schedule::k1F1B: break;
      case Schedule::kInterleaved: return interleaved.has_value();
      case Schedule::kZeroBubble: return zero_bubble;
    }
    return true;
  }
  /// Of a schedule it knows; of 1F1B otherwise.
  [[nodiscard]] const Semantics& semantics_of(Schedule schedule) const {
    return schedule == Schedule::kInterleaved && interleaved ? *interleaved : semantics;
  }
};

/// Generic first.
[[nodiscard]] std::span<const Runtime> runtimes();

[[nodiscard]] const Runtime& runtime_of(Target target);

/// nullopt: nobody has this name.
[[nodiscard]] std::optional<Target> target_named(std::string_view name);
[[nodiscard]] std::optional<Schedule> schedule_named(std::string_view name);

/// "generic", "megatron", ...
[[nodiscard]] std::string_view to_string(Target target);
/// In the order of Rule.
[[nodiscard]] std::vector<Rule> rules_of(const Runtime& runtime);
/// "same-degrees", "no-mixed-stages", ...
[[nodiscard]] std::string_view to_string(Rule rule);
/// "one set of degrees for all stages", ...
[[nodiscard]] std::string_view in_words(Rule rule);
/// "1f1b", "interleaved", "zero-bubble".
[[nodiscard]] std::string_view to_string(Schedule schedule);
/// "overlapped", "blocking", "forward-blocking".
[[nodiscard]] std::string_view to_string(Transfers transfers);
/// "free", "classic".
[[nodiscard]] std::string_view to_string(Warmup warmup);

/// Stages of the longest pipeline that Megatron-LM interleaves in groups of G of its M microbatches; 0: none.
[[nodiscard]] std::int64_t most_interleaved_stages(std::int64_t microbatches, std::int64_t group);

/// Why Megatron-LM would refuse to interleave M microbatches over S stages in groups of G: it asks for S <= G <= M and
/// a last group that is as long as the others or no shorter than S. Empty: it takes them.
[[nodiscard]] std::string interleaving_refusal(std::int64_t microbatches, std::int64_t stages, std::int64_t group);

[[nodiscard]] std::optional<Transfers> transfers_named(std::string_view name);
[[nodiscard]] std::optional<Warmup> warmup_named(std::string_view name);

}  // namespace tangram::runtime
