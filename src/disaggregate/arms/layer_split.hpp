// A pipeline: each class has a range of layers, in any order of the classes.
#pragma once

#include "groups.hpp"

namespace tangram::disaggregate {

struct LayerSplit {
  GroupPlan plan;
  double bound = kNever;  ///< no split into ranges has a shorter period: links and messages counted as nothing
};

/// For every order of the classes the balanced ranges by bisection of the period, then cuts moved while that helps.
/// O(classes! * layers * log).
[[nodiscard]] LayerSplit split_layers(const Problem& problem);

}  // namespace tangram::disaggregate
