// Lists of trade-offs between time and memory, for dynamic programs over layers. Goes in: what one more layer can
// choose. Comes out: of all ways to choose for all layers those that no other beats.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tangram::parallelizer {

/// One way to choose for some layers. Time and memory add up over layers; of peaks, buffers that layers use one after
/// the other, the largest counts. Less is better in all of them.
struct Tradeoff {
  double time = 0;    ///< seconds
  double memory = 0;  ///< bytes
  std::array<double, 3> peaks{};
  std::array<std::int32_t, 2> chosen{};  ///< layers by choice, as the maker of the list counts them
  std::int32_t rest = -1;                ///< of a combined list: which entry of the first list it goes on from
};

/// Those that no other beats, fastest first; of equals the one with the smaller choice. O(n log n) for few peaks.
[[nodiscard]] std::vector<Tradeoff> pareto(std::vector<Tradeoff> all);

/// Every way to choose for the layers of both lists, less those that are beaten. `chosen` is of the second list.
[[nodiscard]] std::vector<Tradeoff> combine(const std::vector<Tradeoff>& first, const std::vector<Tradeoff>& second);

}  // namespace tangram::parallelizer
