// Tools that time whole layers give one number for each: embedding, blocks, then what makes the head. Goes in: such a
// list. Comes out: the three rows.
#pragma once

#include <string>
#include <vector>

#include "context.hpp"

namespace tangram::profiles {

struct LayerTimes {
  double embedding = 0;
  double block = 0;  ///< the median
  double head = 0;   ///< the sum of the layers after the blocks
};

/// How a list of so many layers divides; `most_after` layers may follow the blocks. Noted where it does not.
[[nodiscard]] bool divides(std::size_t layers, const Dimensions& dimensions, std::size_t before, std::size_t most_after,
                           const std::string& file, Context& context);

/// Notes blocks that stand out, and blocks that are copies of each other.
[[nodiscard]] LayerTimes layer_times(const std::vector<double>& times, const Dimensions& dimensions, std::size_t before,
                                     const std::string& file, Context& context);

}  // namespace tangram::profiles
