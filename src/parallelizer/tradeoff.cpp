#include "tradeoff.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tangram::parallelizer {
namespace {

/// The least memory so far with these peaks or lower ones.
struct Best {
  std::array<double, 3> peaks{};
  double memory = 0;

  [[nodiscard]] bool beats(const Tradeoff& other) const {
    return memory <= other.memory && peaks[0] <= other.peaks[0] && peaks[1] <= other.peaks[1] &&
           peaks[2] <= other.peaks[2];
  }
};

}  // namespace

std::vector<Tradeoff> pareto(std::vector<Tradeoff> all) {
  std::sort(all.begin(), all.end(), [](const Tradeoff& a, const Tradeoff& b) {
    return std::tie(a.time, a.memory, a.peaks, a.chosen, a.rest) <
           std::tie(b.time, b.memory, b.peaks, b.chosen, b.rest);
  });
  // What is faster comes before: an entry is beaten by one before it or by none. Peaks are those of single layers,
  // hence few.
  std::vector<Best> best;
  std::vector<Tradeoff> kept;
  for (const Tradeoff& entry : all) {
    if (std::any_of(best.begin(), best.end(), [&](const Best& b) { return b.beats(entry); })) continue;
    kept.push_back(entry);
    const auto same = std::find_if(best.begin(), best.end(), [&](const Best& b) { return b.peaks == entry.peaks; });
    if (same == best.end()) {
      best.push_back({entry.peaks, entry.memory});
    } else {
      same->memory = entry.memory;
    }
  }
  return kept;
}

std::vector<Tradeoff> combine(const std::vector<Tradeoff>& first, const std::vector<Tradeoff>& second) {
  std::vector<Tradeoff> all;
  all.reserve(first.size() * second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (const Tradeoff& more : second) {
      Tradeoff both = more;
      both.time += first[i].time;
      both.memory += first[i].memory;
      for (std::size_t k = 0; k < both.peaks.size(); ++k) both.peaks[k] = std::max(both.peaks[k], first[i].peaks[k]);
      both.rest = static_cast<std::int32_t>(i);
      all.push_back(both);
    }
  }
  return pareto(std::move(all));
}

}  // namespace tangram::parallelizer
