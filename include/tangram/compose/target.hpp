// What a runtime adds to the search. Goes in: a target, the model and the islands. Comes out: cases, each a space of
// its own; every plan of a case keeps the rules that can be told stage by stage, and the best plan of the target is in
// one of them. What remains (hosts, paths) is judged on finished plans (plan::target_verdicts).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/model/model.hpp"

namespace tangram::compose {

enum class Target : std::uint8_t {
  kGeneric,    ///< no demands
  kMegatron,   ///< one set of degrees, one ZeRO stage, one recompute mode for all stages
  kFlagscale,  ///< degrees differ; no cp, sp with tp, ZeRO-1, experts over whole stages, one GPU type a host
  kMimo,       ///< as Megatron-LM, without cp, encoders and decoder in stages of their own
};

struct TargetName {
  std::string_view name;  ///< "megatron": as plans and the command line say
  Target target;
};
[[nodiscard]] std::span<const TargetName> target_names();
[[nodiscard]] std::string_view to_string(Target target);

/// Takes techniques away from the job that the target does not have.
void restrict_to(Target target, model::Job& job);

/// What the cases leave out, in words for Space::rules; empty: nothing.
[[nodiscard]] std::string rule_of(Target target);

/// At least one. Full recompute is of whole stages where it has to be the same for all; sequence parallelism and ZeRO-1
/// are used wherever they can be.
[[nodiscard]] std::vector<Constraints> cases_of(Target target, const model::Model& model,
                                                const cluster::IslandHierarchy& hierarchy);

/// search() over all cases of a target: the best of all, with a bound for all. Later cases look for plans that are
/// better than those of earlier ones only.
[[nodiscard]] SearchResult search_target(Target target, const model::Model& model,
                                         const cluster::IslandHierarchy& hierarchy,
                                         std::span<const parallelizer::Parallelizer* const> parallelizers,
                                         SearchOptions options, const ProgressCallback& progress = {});

}  // namespace tangram::compose
