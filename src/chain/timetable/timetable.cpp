#include "tangram/chain/timetable.hpp"

#include <algorithm>
#include <vector>

#include "blocking_timetable.hpp"
#include "interleaved_timetable.hpp"
#include "overlapped_timetable.hpp"

namespace tangram::chain {

namespace {

// [stage] ends of its last backward pass.
std::int64_t synchronised(const Chain& chain, const std::vector<std::int64_t>& ends) {
  std::int64_t last = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const Candidate& stage = chain.stages[s].candidate;
    last = std::max(last, ends[s] + stage.A - stage.T);
  }
  return last;
}

std::int64_t longest_step(const Chain& chain) {
  std::int64_t longest = 0;
  for (const ChainStage& stage : chain.stages) longest = std::max(longest, stage.candidate.o);
  return longest;
}

// Of a stage, what it computes in an iteration, and in the passes that are its first and its last: those in front of
// the work of the stages behind and behind it, and those of a microbatch on its way there and back.
struct StageWork {
  std::int64_t all = 0;
  std::int64_t around = 0;
  std::int64_t way = 0;
};

StageWork work_of(const Program& program, const ChainStage& stage) {
  const Candidate& plan = stage.candidate;
  if (program.zero_bubble) return {program.microbatches * plan.T, plan.F, plan.passage()};
  if (!program.is_interleaved()) return {program.microbatches * plan.T, plan.T, plan.T};
  const std::vector<ChunkTime> passes = chunk_times(program, stage);
  const std::int64_t first = passes.front().forward + passes.front().backward;
  StageWork work{0, first, first};
  for (const ChunkTime& pass : passes) {
    work.all += program.microbatches / program.interleaving.chunks * (pass.forward + pass.backward);
  }
  return work;
}

}  // namespace

std::int64_t timetable(const Program& program, const Chain& chain, std::int64_t cutoff) {
  const std::int64_t step = longest_step(chain);
  if (program.is_interleaved()) return synchronised(chain, interleaved_ends(program, chain)) + step;
  if (program.blocking_transfers) return synchronised(chain, blocking_ends(program, chain)) + step;
  return overlapped_end(program, chain, cutoff - step) + step;
}

std::int64_t least_time(const Program& program, const Chain& chain) {
  std::int64_t least = 0;
  std::int64_t around = 0;
  std::int64_t way = 0;
  std::int64_t optimizer = 0;
  const std::int64_t hops = program.zero_bubble ? 1 : 2;  // weight gradients behind are there before the last way back
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const StageWork work = work_of(program, chain.stages[s]);
    least = std::max(least, around + work.all);
    optimizer = std::max(optimizer, chain.stages[s].candidate.o);
    around += work.around;
    way += work.way;
    if (s + 1 == chain.stages.size()) break;
    const Price& price = boundary_after(program, chain, s);
    if (price.is_none()) return INT64_MAX;
    around += hops * price.latency;
    way += 2 * price.latency;
  }
  return std::max(least, way) + optimizer;
}

}  // namespace tangram::chain
