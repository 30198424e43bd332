#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tangram {

/// 0 without values.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tangram
