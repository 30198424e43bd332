// Which shapes and pairs of shapes a stage may run on.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "pricing.hpp"

namespace tangram::compose {

namespace {

constexpr std::int64_t kSplitParts = 8;     // samples of a mixed stage are split in eighths of the microbatch
constexpr double kMostUnequalSpeeds = 8.0;  // the slower part would get less than half an eighth

// Samples of the first part, or 0 when the speeds are too far apart.
std::int64_t split(std::int64_t microbatch, double time_a, double time_b) {
  if (time_a <= 0 || time_b <= 0 || microbatch < 2) return 0;
  if (std::max(time_a, time_b) > kMostUnequalSpeeds * std::min(time_a, time_b)) return 0;
  const std::int64_t step = std::max<std::int64_t>(1, microbatch / kSplitParts);
  const double share = time_b / (time_a + time_b);
  const auto steps =
      static_cast<std::int64_t>(std::floor(share * static_cast<double>(microbatch) / static_cast<double>(step) + 0.5));
  const std::int64_t samples = steps * step;
  return samples <= 0 || samples >= microbatch ? 0 : samples;
}

// GPUs of a member in runs that end with the shape, its own first.
std::vector<int> runs_with(int gpus, const ClassShare& share) {
  std::vector<int> runs{gpus};
  for (const int run : share.runs) {
    if (std::ranges::binary_search(share.runs, run - gpus)) runs.push_back(run);
  }
  return runs;
}

}  // namespace

std::vector<std::vector<OptionPart>> single_options(const cluster::IslandLevel& level,
                                                    const std::vector<ClassShare>& shares, std::int64_t microbatch,
                                                    std::int64_t slowest, FrontierStore& store) {
  std::vector<std::vector<OptionPart>> options;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    for (const int gpus : shares[k].shapes) {
      const int samples = static_cast<int>(microbatch);
      const int entry = store.want(cluster::make_shape(level.classes[k], gpus), samples, slowest);
      for (const int run : runs_with(gpus, shares[k])) {
        options.push_back({{{static_cast<int>(k), gpus}, samples, entry, run}});
      }
    }
  }
  return options;
}

std::vector<std::vector<OptionPart>> mixed_options(const cluster::IslandLevel& level,
                                                   const std::vector<std::vector<OptionPart>>& singles,
                                                   std::int64_t microbatch, std::int64_t slowest, FrontierStore& store,
                                                   std::size_t most) {
  struct Pair {
    const OptionPart* a;
    const OptionPart* b;
    std::int64_t samples;
  };
  std::vector<Pair> pairs;
  for (const auto& first : singles) {
    for (const auto& second : singles) {
      const OptionPart& a = first.front();
      const OptionPart& b = second.front();
      if (a.placement.island_class >= b.placement.island_class) continue;
      if (a.is_with_next() || b.is_with_next()) continue;
      const std::int64_t samples = split(microbatch, store.at(a.entry).one_segment, store.at(b.entry).one_segment);
      if (samples > 0) pairs.push_back({&a, &b, samples});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) {
    return x.a->placement.gpus + x.b->placement.gpus > y.a->placement.gpus + y.b->placement.gpus;
  });
  if (pairs.size() > most) pairs.resize(most);
  std::vector<std::vector<OptionPart>> options;
  for (const Pair& pair : pairs) {
    std::vector<OptionPart> parts{*pair.a, *pair.b};
    parts[0].samples = static_cast<int>(pair.samples);
    parts[1].samples = static_cast<int>(microbatch - pair.samples);
    for (OptionPart& part : parts) {
      const auto& island_class = level.classes[static_cast<std::size_t>(part.placement.island_class)];
      part.entry = store.want(cluster::make_shape(island_class, part.placement.gpus), part.samples, slowest);
    }
    options.push_back(std::move(parts));
  }
  return options;
}

}  // namespace tangram::compose
