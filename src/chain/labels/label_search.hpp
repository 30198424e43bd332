// The dynamic program at one fixed period. Goes in: a program, a period P, a completion bound for periods up to P, a
// cutoff. Comes out: the chain with the smallest A + max o among those that P allows and that stay at or below the
// cutoff.
//
// Backward over blocks. State: next block and units used per class; in it the labels (label.hpp) that no other beats.
// Its parts: the extensions of a position (extensions.hpp), those that a state can take (open_groups.hpp), the bounds
// of a label (label_bounds.hpp), the states with their labels and dominance (label_store.hpp), how labels came to be
// (label_tree.hpp), and what a beam search keeps (beam.hpp).
#pragma once

#include "../bounds/completion_bound.hpp"
#include "label_query.hpp"

namespace tangram::chain {

[[nodiscard]] LabelAnswer search_labels(const LabelGround& ground, const CompletionBound& bound,
                                        const LabelQuery& query);

}  // namespace tangram::chain
