#include "tangram/runtime/runtime.hpp"

#include <algorithm>
#include <array>

#include "tangram/base/assert.hpp"

namespace tangram::runtime {

namespace {

constexpr Semantics kStopping{Transfers::kBlocking, Warmup::kClassic};
constexpr Semantics kStoppingForward{Transfers::kForwardBlocking, Warmup::kClassic};

constexpr RuleSet kStages{Rule::kAlikeBlocks,  Rule::kSequenceParallel,  Rule::kZero1,   Rule::kNoMixedStages,
                          Rule::kEqualSamples, Rule::kBlockingTransfers, Rule::kSchedule};
constexpr RuleSet kUniform = kStages.with({Rule::kSameDegrees, Rule::kSameRecompute});

constexpr ExecutionOptions kMegatronOptions{.cuda_graphs = true,
                                            .expert_dispatch = true,
                                            .gather_overlap = true,
                                            .gradient_bucket = true,
                                            .expert_overlap = true,
                                            .narrow_parameters = true,
                                            .wide_layers = true,
                                            .precision_aware = true,
                                            .optimizer_offload = true,
                                            .offload = true,
                                            .packing = true};
constexpr ExecutionOptions kAllOptions = [] {
  ExecutionOptions all = kMegatronOptions;
  all.transposes = true;
  all.narrow_gates = true;
  return all;
}();

constexpr std::array kRuntimes{
    Runtime{.target = Target::kGeneric,
            .name = "generic",
            .title = "no runtime in particular",
            .interleaved = Semantics{Transfers::kOverlapped, Warmup::kClassic},
            .zero_bubble = true,
            .options = kAllOptions},
    Runtime{.target = Target::kMegatron,
            .name = "megatron",
            .title = "Megatron-LM",
            .semantics = kStopping,
            .interleaved = kStoppingForward,
            .options = kMegatronOptions,
            .takes_options = true,
            .in_place_loss = true,
            .rules = kUniform.with({Rule::kRecomputeAlone, Rule::kContextKernels, Rule::kOverlapInterleaved}),
            .in_words = "target megatron: one set of degrees and one recompute mode (full: of all layers) for all "
                        "stages, sequence parallelism with tp, ZeRO-1, classic warm-up, blocking transfers"},
    Runtime{.target = Target::kFlagscale,
            .name = "flagscale",
            .title = "FlagScale",
            .semantics = kStopping,
            .in_place_loss = true,
            .rules = kStages.with({Rule::kTpOnlyWithSp, Rule::kNoContextParallel, Rule::kNoSelectiveRecompute,
                                   Rule::kExpertsOverStage, Rule::kOneTypeAHost, Rule::kSameTpAtEnds}),
            .in_words = "target flagscale: no cp, sequence parallelism with tp, ZeRO-1, no selective recompute, "
                        "experts over whole stages, classic warm-up, blocking transfers, one GPU type on all hosts "
                        "that have several of them"},
    Runtime{.target = Target::kMimo,
            .name = "mimo",
            .title = "Megatron-LM MIMO",
            .semantics = kStopping,
            .in_place_loss = true,
            .rules = kUniform.with({Rule::kNoContextParallel, Rule::kPowerOfTwoTp, Rule::kWholeEncoders}),
            .in_words = "target mimo: as megatron, tp a power of two, no cp; each encoder is one stage with tp and dp "
                        "of its own, degrees of data parallelism divide each other"},
};

struct RuleWords {
  Rule rule;
  std::string_view name;
  std::string_view text;
};
constexpr std::array kRuleWords{
    RuleWords{Rule::kSameDegrees, "same-degrees", "one set of degrees for all stages"},
    RuleWords{Rule::kSameRecompute, "same-recompute", "one recompute mode for all stages"},
    RuleWords{Rule::kAlikeBlocks, "alike-blocks", "all blocks of a stage recomputed and sharded alike"},
    RuleWords{Rule::kSequenceParallel, "sequence-parallel", "sequence parallelism wherever there is tp"},
    RuleWords{Rule::kTpOnlyWithSp, "tp-only-with-sp", "no tp without sequence parallelism"},
    RuleWords{Rule::kZero1, "zero1", "ZeRO-1 wherever there is dp, and no other ZeRO stage"},
    RuleWords{Rule::kNoContextParallel, "no-context-parallel", "no context parallelism"},
    RuleWords{Rule::kNoSelectiveRecompute, "no-selective-recompute", "no selective recompute"},
    RuleWords{Rule::kNoMixedStages, "no-mixed-stages", "no stage with GPUs of two types"},
    RuleWords{Rule::kEqualSamples, "equal-samples", "equally many samples for all replicas"},
    RuleWords{Rule::kOneTypeAHost, "one-type-a-host", "one GPU type of each host"},
    RuleWords{Rule::kSameTpAtEnds, "same-tp-at-ends", "the same tp at both ends of tied embeddings"},
    RuleWords{Rule::kExpertsOverStage, "experts-over-stage", "experts over all ranks of a stage"},
    RuleWords{Rule::kPowerOfTwoTp, "power-of-two-tp", "tp a power of two"},
    RuleWords{Rule::kWholeEncoders, "whole-encoders", "each encoder a stage of its own"},
    RuleWords{Rule::kRecomputeAlone, "recompute-alone",
              "nothing recomputed that graphs, or exchanges of experts beside passes, hold a part of"},
    RuleWords{Rule::kContextKernels, "context-kernels",
              "no sliding windows around a ring of context parallelism, no heads repeated for its all-to-all"},
    RuleWords{Rule::kOverlapInterleaved, "overlap-interleaved",
              "exchanges of experts beside passes with interleaved chunks or one stage only"},
    RuleWords{Rule::kBlockingTransfers, "blocking-transfers", "transfers that stop the stages"},
    RuleWords{Rule::kSchedule, "schedule", "transfers that stop the stages, and the classic warm-up"},
};

const RuleWords& words_of(Rule rule) {
  const auto found = std::ranges::find(kRuleWords, rule, &RuleWords::rule);
  TANGRAM_ASSERT(found != kRuleWords.end());
  return *found;
}

Semantics without_stops(Semantics semantics, Rule rule) {
  if (rule == Rule::kBlockingTransfers || rule == Rule::kSchedule) semantics.transfers = Transfers::kOverlapped;
  if (rule == Rule::kSchedule) semantics.warmup = Warmup::kFree;
  return semantics;
}

template <class Value, std::size_t n>
std::optional<Value> named(std::string_view name, const std::array<Value, n>& values) {
  const auto found = std::ranges::find_if(values, [&](Value value) { return to_string(value) == name; });
  return found == values.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::span<const Runtime> runtimes() { return kRuntimes; }

const Runtime& runtime_of(Target target) {
  const auto found = std::ranges::find(kRuntimes, target, &Runtime::target);
  TANGRAM_ASSERT(found != kRuntimes.end());
  return *found;
}

Runtime Runtime::without(Rule rule) const {
  Runtime relaxed = *this;
  relaxed.rules = rules.without(rule);
  relaxed.semantics = without_stops(semantics, rule);
  if (interleaved) relaxed.interleaved = without_stops(*interleaved, rule);
  return relaxed;
}

std::optional<Target> target_named(std::string_view name) {
  const auto found = std::ranges::find(kRuntimes, name, &Runtime::name);
  return found == kRuntimes.end() ? std::nullopt : std::optional(found->target);
}

std::optional<Schedule> schedule_named(std::string_view name) {
  return named(name, std::array{Schedule::k1F1B, Schedule::kInterleaved, Schedule::kZeroBubble});
}

std::string_view to_string(Target target) { return runtime_of(target).name; }

std::vector<Rule> rules_of(const Runtime& runtime) {
  std::vector<Rule> rules;
  for (const RuleWords& words : kRuleWords) {
    if (runtime.has(words.rule)) rules.push_back(words.rule);
  }
  return rules;
}

std::string_view to_string(Rule rule) { return words_of(rule).name; }
std::string_view in_words(Rule rule) { return words_of(rule).text; }

std::string_view to_string(Schedule schedule) {
  switch (schedule) {
    case Schedule::k1F1B: break;
    case Schedule::kInterleaved: return "interleaved";
    case Schedule::kZeroBubble: return "zero-bubble";
  }
  return "1f1b";
}

std::string_view to_string(Transfers transfers) {
  switch (transfers) {
    case Transfers::kOverlapped: break;
    case Transfers::kBlocking: return "blocking";
    case Transfers::kForwardBlocking: return "forward-blocking";
  }
  return "overlapped";
}

std::string_view to_string(Warmup warmup) { return warmup == Warmup::kClassic ? "classic" : "free"; }

std::int64_t most_interleaved_stages(std::int64_t microbatches, std::int64_t group) {
  if (group > microbatches) return 0;
  const std::int64_t rest = microbatches % group;
  return rest == 0 ? group : rest;
}

std::string interleaving_refusal(std::int64_t microbatches, std::int64_t stages, std::int64_t group) {
  const std::string groups = "groups of " + std::to_string(group) + " microbatches are ";
  const std::string of_stages = "shorter than the " + std::to_string(stages) + " stages";
  if (group < stages) return groups + of_stages;
  if (group > microbatches) return groups + "longer than the " + std::to_string(microbatches) + " there are";
  const std::int64_t most = most_interleaved_stages(microbatches, group);
  if (stages <= most) return {};
  return std::to_string(microbatches) + " microbatches in groups of " + std::to_string(group) +
         " leave a last group of " + std::to_string(most) + ", " + of_stages;
}

std::optional<Transfers> transfers_named(std::string_view name) {
  return named(name, std::array{Transfers::kOverlapped, Transfers::kBlocking, Transfers::kForwardBlocking});
}

std::optional<Warmup> warmup_named(std::string_view name) {
  return named(name, std::array{Warmup::kFree, Warmup::kClassic});
}

}  // namespace tangram::runtime
