#include "final_local_search.hpp"

#include <algorithm>
#include <utility>

#include "settings.hpp"

namespace tangram::compose {

void FinalLocalSearch::run() {
  std::vector<PlacedChain> starts = record_.take_fastest();
  if (starts.empty()) return;
  const std::int64_t before = starts.front().timed.time;
  for (PlacedChain& start : starts) batches_.improve(start, effort());
  PlacedChain fastest =
      *std::ranges::min_element(starts, {}, [](const PlacedChain& start) { return start.timed.time; });
  while (take_other_setting(fastest)) {
  }
  if (fastest.timed.time < before) record_.take_improved(fastest);
  if (!batches_.cuts().are_everywhere()) move_single_blocks(fastest);
}

// Of the chain's shapes alone it is cheap to say how fast a setting is.
bool FinalLocalSearch::take_other_setting(PlacedChain& fastest) {
  const std::int64_t effort_of_each = effort() / options_.tuning.programs.other_setting_share;
  for (const Setting& setting : settings_beside(model_, hierarchy_, options_, fastest.candidate->setting)) {
    PlacedChain other = batches_.in_setting(fastest, setting, effort_of_each);
    if (other.store) record_.count_queries(*other.store);
    if (other.timed.time >= fastest.timed.time) continue;
    PlacedChain among_all = among_all_shapes(other);
    const bool is_of_space = among_all.timed.time != kNoTime;
    // Other shapes may be ones that are not offered; the same ones are, if with other samples of a mixed stage.
    if (!is_of_space && setting.replicas != fastest.candidate->setting.replicas) continue;
    fastest = is_of_space ? std::move(among_all) : std::move(other);
    return true;
  }
  return false;
}

// Of few microbatches a closed form may be far above the timetable.
PlacedChain FinalLocalSearch::among_all_shapes(const PlacedChain& chain) const {
  const std::int64_t time = chain.timed.time;
  const std::int64_t within_reach = time + time / options_.tuning.programs.closed_form_share;
  PlacedChain among_all = batches_.among_all_shapes(chain, std::max(within_reach, chain.timed.chain.time + 1));
  record_.count_queries(*among_all.store);
  if (among_all.timed.time != kNoTime) batches_.improve(among_all, effort());
  return among_all;
}

// Many stages are as slow as the slowest: to move one boundary after the other makes none of them faster.
void FinalLocalSearch::move_single_blocks(const PlacedChain& fastest) {
  const CutPoints& cuts = batches_.cuts();
  std::vector<int> ends;
  for (const chain::ChainStage& stage : fastest.timed.chain.stages) ends.push_back(cuts.block(stage.last));
  // As many segments as a model may have blocks that is cut anywhere, and no further than to the cuts beside each.
  const int most = options_.cuts.blocks / static_cast<int>(2 * ends.size());
  const int reach = std::min(cuts.longest_segment(), most);
  if (ends.size() == 1 || reach == 0) return;
  const SignatureTable signatures(model_, CutPoints::near(model_, ends, reach));
  const BatchMaker near(model_, hierarchy_, parallelizers_, options_, signatures);
  PlacedChain start = fastest;
  for (chain::ChainStage& stage : start.timed.chain.stages) {
    stage.first = near.cuts().cut_at(cuts.block(stage.first));
    stage.last = near.cuts().cut_at(cuts.block(stage.last));
  }
  PlacedChain moved = near.among_own_shapes(start, fastest.candidate->setting, 2 * reach);
  if (moved.store) record_.count_queries(*moved.store);
  if (moved.timed.time == kNoTime) return;
  const Goal goal{moved.timed.chain.time, 0, options_.tuning.programs.first_pass, fastest.timed.time};
  near.solve(*moved.candidate, *moved.store, goal);
  for (const chain::TimedChain& timed : moved.candidate->solved.timed) {
    if (timed.time < moved.timed.time) moved.timed = timed;
  }
  near.improve(moved, effort());
  if (moved.timed.time < fastest.timed.time) record_.take_moved(near, moved);
}

std::int64_t FinalLocalSearch::effort() const {
  const ProgramTuning& tuning = options_.tuning.programs;
  return tuning.last_effort + tuning.effort_of_label * record_.labels();
}

}  // namespace tangram::compose
