#include "tangram/runtime/runtime.hpp"

#include <algorithm>
#include <array>

#include "tangram/base/assert.hpp"

namespace tangram::runtime {

namespace {

constexpr Semantics kStopping{Transfers::kBlocking, Warmup::kClassic};
constexpr Semantics kStoppingForward{Transfers::kForwardBlocking, Warmup::kClassic};

constexpr std::array kRuntimes{
    Runtime{.target = Target::kGeneric, .name = "generic", .title = "no runtime in particular"},
    Runtime{.target = Target::kMegatron,
            .name = "megatron",
            .title = "Megatron-LM",
            .semantics = kStopping,
            .interleaved = kStoppingForward,
            .degrees = DegreesRule::kUniform,
            .rules = "target megatron: one set of degrees and one recompute mode (full: of all layers) for all stages, "
                     "sequence parallelism with tp, ZeRO-1, classic warm-up, blocking transfers"},
    Runtime{.target = Target::kFlagscale,
            .name = "flagscale",
            .title = "FlagScale",
            .semantics = kStopping,
            .degrees = DegreesRule::kMeshes,
            .context_parallel = false,
            .selective_recompute = false,
            .rules = "target flagscale: no cp, sequence parallelism with tp, ZeRO-1, no selective recompute, experts "
                     "over whole stages, classic warm-up, blocking transfers, one GPU type on all hosts that have "
                     "several of them"},
    Runtime{
        .target = Target::kMimo,
        .name = "mimo",
        .title = "Megatron-LM MIMO",
        .semantics = kStopping,
        .degrees = DegreesRule::kUniform,
        .context_parallel = false,
        .power_of_two_tp = true,
        .whole_modules = true,
        .rules =
            "target mimo: as megatron, tp a power of two, no cp; each encoder is one stage with tp and dp of its own, "
            "degrees of data parallelism divide each other"},
};

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

std::optional<Target> target_named(std::string_view name) {
  const auto found = std::ranges::find(kRuntimes, name, &Runtime::name);
  return found == kRuntimes.end() ? std::nullopt : std::optional(found->target);
}

std::optional<Schedule> schedule_named(std::string_view name) {
  return named(name, std::array{Schedule::k1F1B, Schedule::kInterleaved});
}

std::string_view to_string(Target target) { return runtime_of(target).name; }

std::string_view to_string(Schedule schedule) { return schedule == Schedule::kInterleaved ? "interleaved" : "1f1b"; }

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
