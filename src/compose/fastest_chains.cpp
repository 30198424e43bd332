#include "fastest_chains.hpp"

#include <algorithm>
#include <utility>

namespace tangram::compose {

void FastestChains::note(CandidateProgram candidate, const std::shared_ptr<FrontierStore>& store) {
  const std::vector<chain::TimedChain> timed = std::move(candidate.solved.timed);
  candidate.solved = {};
  const auto shared = std::make_shared<CandidateProgram>(std::move(candidate));
  for (const chain::TimedChain& chain : timed) insert({shared, store, chain});
}

// One that takes as long as another is the same but for names. Of the same program once more, the first look knows the
// fewest shapes.
void FastestChains::insert(PlacedChain chain) {
  const auto time_of = [](const PlacedChain& each) { return each.timed.time; };
  const auto place = std::ranges::lower_bound(chains_, chain.timed.time, {}, time_of);
  if (place != chains_.end() && place->timed.time == chain.timed.time) {
    if (place->candidate != chain.candidate) *place = std::move(chain);
    return;
  }
  chains_.insert(place, std::move(chain));
  if (chains_.size() > most_) chains_.pop_back();
}

}  // namespace tangram::compose
