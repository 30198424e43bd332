#include "tangram/chain/timetable.hpp"

#include <algorithm>
#include <vector>

#include "blocking_timetable.hpp"
#include "interleaved_timetable.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

constexpr std::int64_t kNotYet = -1;

// One stage on its way through the iteration.
struct Executor {
  std::int64_t forward = 0;   // of one microbatch
  std::int64_t backward = 0;  // zero bubble: to the gradient of its input
  std::int64_t weights = 0;   // of what that puts off
  std::int64_t in_flight = 1;
  std::int64_t most_held = 1;  // of those in flight, and those whose weight gradients wait
  std::int64_t forwards = 0;   // done so far
  std::int64_t backwards = 0;
  std::int64_t released = 0;  // with their weight gradients, where these are put off
  std::int64_t free_at = 0;
  Price next;                              // boundary to the next stage
  std::int64_t down_free_at = 0;           // the link there
  std::int64_t up_free_at = 0;             // the link back from there
  std::vector<std::int64_t> inputs;        // [microbatch] when it is here
  std::vector<std::int64_t> output_grads;  // [microbatch] when the gradient of its output is here
};

class Run {
 public:
  Run(const Program& program, const Chain& chain) : microbatches_(program.microbatches) {
    const auto count = static_cast<std::size_t>(microbatches_);
    for (std::size_t s = 0; s < chain.stages.size(); ++s) {
      const Candidate& plan = chain.stages[s].candidate;
      Executor executor;
      executor.forward = plan.F;
      executor.backward = plan.passage() - plan.F;
      executor.weights = plan.W;
      executor.in_flight = chain.in_flight[s];
      executor.most_held = std::max(executor.in_flight, plan.n_max);
      if (s + 1 < chain.stages.size()) executor.next = boundary_after(program, chain, s);
      executor.inputs.assign(count, s == 0 ? 0 : kNotYet);
      executor.output_grads.assign(count, s + 1 == chain.stages.size() ? 0 : kNotYet);
      executors_.push_back(std::move(executor));
    }
  }

  // [stage] when its last backward pass ends, and what that has put off.
  std::vector<std::int64_t> ends() {
    while (executors_.front().backwards < microbatches_) {
      for (std::size_t s = 0; s < executors_.size(); ++s) advance(s);
      for (std::size_t s = executors_.size(); s-- > 0;) advance(s);
    }
    std::vector<std::int64_t> result;
    for (const Executor& executor : executors_) {
      result.push_back(executor.free_at + (microbatches_ - executor.released) * executor.weights);
    }
    return result;
  }

 private:
  // All passes whose inputs are there.
  void advance(std::size_t s) {
    Executor& stage = executors_[s];
    while (stage.backwards < microbatches_) {
      const bool forward = stage.forwards < microbatches_ && stage.forwards - stage.backwards < stage.in_flight;
      const std::int64_t ready = forward ? at(stage.inputs, stage.forwards) : at(stage.output_grads, stage.backwards);
      if (ready == kNotYet) return;
      if (stage.weights > 0) work_out_weights(stage, ready, forward);
      stage.free_at = std::max(stage.free_at, ready) + (forward ? stage.forward : stage.backward);
      if (forward) {
        send_down(s);
        ++stage.forwards;
      } else {
        send_up(s);
        ++stage.backwards;
      }
    }
  }

  // Those that start before the next pass can, and those that have to make room for it.
  static void work_out_weights(Executor& stage, std::int64_t ready, bool forward) {
    while (stage.released < stage.backwards) {
      const bool is_full = forward && stage.forwards - stage.released >= stage.most_held;
      if (stage.free_at >= ready && !is_full) return;
      stage.free_at += stage.weights;
      ++stage.released;
    }
  }

  void send_down(std::size_t s) {
    if (s + 1 == executors_.size()) return;
    Executor& stage = executors_[s];
    at(executors_[s + 1].inputs, stage.forwards) = send(stage.free_at, stage.next, stage.down_free_at);
  }

  void send_up(std::size_t s) {
    if (s == 0) return;
    Executor& before = executors_[s - 1];
    at(before.output_grads, executors_[s].backwards) = send(executors_[s].free_at, before.next, before.up_free_at);
  }

  // When it arrives.
  static std::int64_t send(std::int64_t from, const Price& price, std::int64_t& free_at) {
    const std::int64_t start = std::max(from, free_at);
    free_at = start + price.occupancy;
    return start + price.latency;
  }

  std::int64_t microbatches_;
  std::vector<Executor> executors_;
};

std::vector<std::int64_t> ends_of(const Program& program, const Chain& chain) {
  if (program.is_interleaved()) return interleaved_ends(program, chain);
  return program.blocking_transfers ? blocking_ends(program, chain) : Run(program, chain).ends();
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

std::int64_t timetable(const Program& program, const Chain& chain) {
  const std::vector<std::int64_t> ends = ends_of(program, chain);
  std::int64_t synchronised = 0;
  std::int64_t optimizer = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const Candidate& stage = chain.stages[s].candidate;
    synchronised = std::max(synchronised, ends[s] + stage.A - stage.T);
    optimizer = std::max(optimizer, stage.o);
  }
  return synchronised + optimizer;
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
