#include "tangram/runtime/runtime.hpp"

#include <algorithm>
#include <array>

#include "tangram/base/assert.hpp"

namespace tangram::runtime {

namespace {

constexpr Semantics kStopping{Transfers::kBlocking, Warmup::kClassic};

constexpr std::array kRuntimes{
    Runtime{.target = Target::kGeneric, .name = "generic", .title = "no runtime in particular"},
    Runtime{.target = Target::kMegatron,
            .name = "megatron",
            .title = "Megatron-LM",
            .semantics = kStopping,
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
    Runtime{.target = Target::kMimo,
            .name = "mimo",
            .title = "Megatron-LM MIMO",
            .semantics = kStopping,
            .degrees = DegreesRule::kUniform,
            .context_parallel = false,
            .power_of_two_tp = true,
            .whole_modules = true,
            .rules = "target mimo: as megatron, tp a power of two, no cp, an encoder is one stage"},
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

std::string_view to_string(Target target) { return runtime_of(target).name; }

std::string_view to_string(Transfers transfers) {
  return transfers == Transfers::kBlocking ? "blocking" : "overlapped";
}

std::string_view to_string(Warmup warmup) { return warmup == Warmup::kClassic ? "classic" : "free"; }

std::optional<Transfers> transfers_named(std::string_view name) {
  return named(name, std::array{Transfers::kOverlapped, Transfers::kBlocking});
}

std::optional<Warmup> warmup_named(std::string_view name) {
  return named(name, std::array{Warmup::kFree, Warmup::kClassic});
}

}  // namespace tangram::runtime
