// A recurrence between its exchanges: all positions of a rank's heads. Goes in: what was projected. Comes out: what is
// projected back, or the gradients of what was projected.
#pragma once

#include <vector>

#include "recurrence.hpp"

namespace tangram::execute {

[[nodiscard]] Matrix heads_forward(const Place& place, const RecurrenceWeights& weights, const KeptRecurrence& kept);

/// Gradients of gate, value, key, query, step and, under the delta rule, strength.
[[nodiscard]] std::vector<Matrix> heads_backward(const Place& place, const RecurrenceWeights& weights,
                                                 const KeptRecurrence& kept, const Matrix& gradient);

}  // namespace tangram::execute
