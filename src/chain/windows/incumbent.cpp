#include "incumbent.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tangram/base/assert.hpp"

namespace tangram::chain {

bool earlier(const Chain& a, const Chain& b) {
  if (a.time != b.time) return a.time < b.time;
  if (a.stages.size() != b.stages.size()) return a.stages.size() < b.stages.size();
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    const auto ka = std::tuple(a.stages[s].last, a.stages[s].option, a.stages[s].candidate.source);
    const auto kb = std::tuple(b.stages[s].last, b.stages[s].option, b.stages[s].candidate.source);
    if (ka != kb) return ka < kb;
  }
  return false;
}

std::int64_t Incumbent::keep(Chain chain) {
  const bool feasible = evaluate(program_, chain);
  TANGRAM_ASSERT(feasible);
  if (!feasible) return 0;
  best_ = std::min(best_, of_interest(chain.time, limits_.accepted_gap));
  const std::int64_t period = chain.period;
  if (chain.time >= limits_.incumbent) return period;
  const bool known = std::any_of(chains_.begin(), chains_.end(),
                                 [&](const Chain& other) { return !earlier(chain, other) && !earlier(other, chain); });
  if (!known) {
    chains_.push_back(std::move(chain));
    std::sort(chains_.begin(), chains_.end(), earlier);
    if (chains_.size() > static_cast<std::size_t>(limits_.keep)) chains_.pop_back();
  }
  return period;
}

}  // namespace tangram::chain
