// What a runtime adds to the search. Goes in: a target, the model and the islands. Comes out: cases, each a space of
// its own; every plan of a case keeps the rules that can be told stage by stage, and the best plan of the target is in
// one of them. What remains (hosts, paths) is judged on finished plans (plan::target_verdicts).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/model/model.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::compose {

using runtime::Target;

/// Takes techniques away from the job that the runtime does not have.
void restrict_to(const runtime::Runtime& runtime, model::Model& model);

/// Whether the rule can leave anything out: one on tied embeddings bears on models that have them alone.
[[nodiscard]] bool bears_on(runtime::Rule rule, const model::Model& model, const cluster::IslandHierarchy& hierarchy);

/// At least one. Full recompute is of whole stages where it has to be the same for all; sequence parallelism and ZeRO-1
/// are used wherever they can be. Homogeneous plans of no target are cases by their degrees.
[[nodiscard]] std::vector<Constraints> cases_of(runtime::Runtime runtime, const model::Model& model,
                                                const cluster::IslandHierarchy& hierarchy,
                                                EncoderPlacement placement = EncoderPlacement::kAny);

/// search() over all cases of a target and of options.placement: the best of all, with a bound for all. Later cases
/// look for plans that are better than those of earlier ones only; interleaved ones, with options.timed, also for those
/// that may be faster pass by pass than the fastest so far. Where there is no plan with the cuts that options allow,
/// with finer ones. Colocated encoders are for no target in particular.
[[nodiscard]] SearchResult search_target(Target target, const model::Model& model,
                                         const cluster::IslandHierarchy& hierarchy,
                                         std::span<const parallelizer::Parallelizer* const> parallelizers,
                                         SearchOptions options, const ProgressCallback& progress = {});

}  // namespace tangram::compose
