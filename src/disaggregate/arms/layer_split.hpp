// A pipeline: each class has a range of layers, in any order of the classes.
#pragma once

#include "groups.hpp"

namespace tangram::disaggregate {

/// For every order of the classes the balanced ranges by bisection of the period, then cuts moved while that helps. The
/// bound counts links and messages as nothing. O(classes! * layers * log).
[[nodiscard]] GroupPlan split_layers(const Problem& problem);

}  // namespace tangram::disaggregate
