// The cheapest placement on two classes: a minimum s-t cut.
#pragma once

#include "priced.hpp"

namespace tangram::disaggregate {

/// Kernels on the source's side run on class 0. A cost that readers share has one auxiliary node for each class it is
/// paid for, so that any graph of kernels is solved exactly (but for rounding to 2^-50 of the sum, downwards in
/// `bound`).
[[nodiscard]] Cheapest cheapest_by_cut(const PricedProblem& priced);

}  // namespace tangram::disaggregate
