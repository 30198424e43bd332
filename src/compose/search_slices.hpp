// search() of a model whose slices are known: the cases of a target have them in common. Goes in: what search() takes,
// and the slices that its cuts make. Comes out: as search() has it.
#pragma once

#include <span>

#include "frontier_store.hpp"
#include "tangram/compose/search.hpp"

namespace tangram::compose {

/// Those of the cuts that the options allow: they depend on the model's blocks, not on its job.
[[nodiscard]] SignatureTable signatures_of(const model::Model& model, const SearchOptions& options);

[[nodiscard]] SearchResult search_slices(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                         std::span<const parallelizer::Parallelizer* const> parallelizers,
                                         const SearchOptions& options, const SignatureTable& signatures,
                                         const ProgressCallback& progress);

}  // namespace tangram::compose
