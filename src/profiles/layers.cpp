#include "layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tangram::profiles {
namespace {

void note_blocks(const std::vector<double>& blocks, const std::string& file, Context& context) {
  const auto strange = outliers_of_equals(blocks);
  if (!strange.empty()) {
    context.notes.detected("outlier-layers", file,
                           fmt::format("{} of {} equal layers stand out by a z-score above {}; the median counts",
                                       strange.size(), blocks.size(), kOutlier));
  }
  // The first block may have been timed by itself.
  const bool copies =
      blocks.size() > 3 && std::all_of(blocks.begin() + 2, blocks.end(), [&](double t) { return t == blocks[1]; });
  if (copies) {
    context.notes.detected("repeated-layers", file,
                           "the blocks after the second repeat it to the last digit: one was timed");
  }
}

}  // namespace

bool divides(std::size_t layers, const Dimensions& dimensions, std::size_t before, std::size_t most_after,
             const std::string& file, Context& context) {
  const auto blocks = static_cast<std::size_t>(dimensions.blocks);
  if (layers > before + blocks && layers <= before + blocks + most_after) return true;
  context.notes.left_out(
      "other-model", file,
      fmt::format("{} layers; {} blocks with {} layer{} before and up to {} after make {} to {}", layers, blocks,
                  before, before == 1 ? "" : "s", most_after, before + blocks + 1, before + blocks + most_after));
  return false;
}

LayerTimes layer_times(const std::vector<double>& times, const Dimensions& dimensions, std::size_t before,
                       const std::string& file, Context& context) {
  const auto first = times.begin() + static_cast<std::ptrdiff_t>(before);
  const auto last = first + dimensions.blocks;
  const std::vector<double> blocks(first, last);
  note_blocks(blocks, file, context);
  return {std::accumulate(times.begin(), first, 0.0), median(blocks), std::accumulate(last, times.end(), 0.0)};
}

}  // namespace tangram::profiles
