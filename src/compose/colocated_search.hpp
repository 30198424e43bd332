// The search for encoders on the GPUs of the language model. Goes in: the whole model, the islands, what may be spent.
// Comes out: the best plans by closed form, and a bound for the space.
//
// Encoders and language model take turns, so that an iteration is the time of the encoders and that of the language
// model, which sees of them the memory that they keep. For every layout of the encoders the language model is searched
// with the least of that memory taken from every GPU. Its bound and the least time of the layout are then a bound on
// the layout, and its plans are placed with what they really keep: where that is more, the search is repeated with it.
#pragma once

#include <span>

#include "tangram/compose/search.hpp"

namespace tangram::compose {

/// As search(), of compositions with `colocated`. Errors (infeasible): "colocated-model", "colocated-parallelizer".
[[nodiscard]] SearchResult search_colocated(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                            std::span<const parallelizer::Parallelizer* const> parallelizers,
                                            const SearchOptions& options, const ProgressCallback& progress);

}  // namespace tangram::compose
