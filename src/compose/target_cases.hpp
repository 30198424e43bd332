// The cases of a target with the cuts that the options allow. Goes in and comes out: as search_target() has it.
#pragma once

#include <span>

#include "tangram/compose/target.hpp"

namespace tangram::compose {

/// Finds no plan where it takes other cuts than these (CutLimits).
[[nodiscard]] SearchResult search_cases(Target target, const model::Model& model,
                                        const cluster::IslandHierarchy& hierarchy,
                                        std::span<const parallelizer::Parallelizer* const> parallelizers,
                                        const SearchOptions& options, const ProgressCallback& progress);

}  // namespace tangram::compose
