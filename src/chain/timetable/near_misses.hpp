// What local search came by that was hardly slower than the best chain. Goes in: chains and their times. Comes out: the
// fastest few, from which one change more may lead further.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

[[nodiscard]] inline bool have_same_stages(const Chain& a, const Chain& b) {
  return std::ranges::equal(a.stages, b.stages, [](const ChainStage& x, const ChainStage& y) {
    return x.last == y.last && x.option == y.option;
  });
}

/// Of those of the same stages the fastest.
class NearMisses {
 public:
  explicit NearMisses(const SolverTuning& tuning) : tuning_(tuning) {}

  [[nodiscard]] bool is_near(std::int64_t time, std::int64_t best) const {
    return static_cast<double>(time) < tuning_.near_miss * static_cast<double>(best);
  }

  void note(Chain chain, std::int64_t time) {
    const auto twin =
        std::ranges::find_if(chains_, [&](const TimedChain& other) { return have_same_stages(chain, other.chain); });
    if (twin == chains_.end()) {
      chains_.push_back({std::move(chain), time});
    } else if (time < twin->time) {
      *twin = {std::move(chain), time};
    }
    std::ranges::stable_sort(chains_, {}, &TimedChain::time);
    if (chains_.size() > tuning_.near_misses) chains_.pop_back();
  }

  /// The fastest first.
  [[nodiscard]] std::vector<TimedChain> take() { return std::exchange(chains_, {}); }

 private:
  const SolverTuning& tuning_;
  std::vector<TimedChain> chains_;
};

}  // namespace tangram::chain
