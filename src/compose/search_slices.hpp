// search() beside others of the same model: the cases of a target have its slices in common, and what was screened of
// them. Goes in: what search() takes, the slices that its cuts make, and sizes that need not be looked at. Comes out:
// as search() has it, and more such sizes.
#pragma once

#include <span>

#include "frontier_store.hpp"
#include "screening.hpp"
#include "tangram/compose/search.hpp"

namespace tangram::compose {

/// Those of the cuts that the options allow: they depend on the model's blocks, not on its job.
[[nodiscard]] SignatureTable signatures_of(const model::Model& model, const SearchOptions& options);

[[nodiscard]] SearchResult search_slices(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                         std::span<const parallelizer::Parallelizer* const> parallelizers,
                                         const SearchOptions& options, const SignatureTable& signatures,
                                         ScreenedSizes& screened, const ProgressCallback& progress);

}  // namespace tangram::compose
