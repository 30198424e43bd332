#include "interleaved_timetable.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::chain {

namespace {

constexpr std::int64_t kNotHere = -1;

struct ChunkLink {
  Price price;
  std::int64_t down_free_at = 0;
  std::int64_t up_free_at = 0;
};

// One stage on its way through the iteration.
struct ChunkedStage {
  std::vector<ChunkTime> passes;  // by chunk
  std::int64_t warmup = 0;
  std::int64_t forwards = 0;  // done so far
  std::int64_t backwards = 0;
  std::int64_t free_at = 0;
  Grid<std::int64_t> inputs;        // by chunk and microbatch: when it is here
  Grid<std::int64_t> output_grads;  // when the gradient of its output is here
};

struct ChunkPass {
  std::int64_t chunk = 0;
  std::int64_t microbatch = 0;
};

class InterleavedRun {
 public:
  InterleavedRun(const Program& program, const Chain& chain)
      : chunks_(program.interleaving.chunks),
        passes_(program.microbatches),
        group_(chain.group),
        sends_block_(program.interleaving.sends_block) {
    const auto count = static_cast<std::int64_t>(chain.stages.size());
    for (std::int64_t s = 0; s < count; ++s) {
      ChunkedStage worker;
      worker.passes = chunk_times(program, at(chain.stages, s));
      worker.warmup = std::min(passes_, 2 * (count - 1 - s) + (chunks_ - 1) * group_);
      worker.inputs.assign(chunks_, passes_ / chunks_, kNotHere);
      worker.output_grads.assign(chunks_, passes_ / chunks_, kNotHere);
      workers_.push_back(std::move(worker));
      const auto stage = static_cast<std::size_t>(s);
      links_.push_back({s + 1 < count ? boundary_after(program, chain, stage) : boundary_around(program, chain)});
    }
    std::ranges::fill(workers_.front().inputs.row(0), 0);
    std::ranges::fill(workers_.back().output_grads.row(chunks_ - 1), 0);  // the loss follows from its own forward pass
  }

  std::vector<std::int64_t> ends() {
    while (std::ranges::any_of(workers_, [&](const ChunkedStage& worker) { return worker.backwards < passes_; })) {
      for (std::size_t s = 0; s < workers_.size(); ++s) advance(s);
      for (std::size_t s = workers_.size(); s-- > 0;) advance(s);
    }
    std::vector<std::int64_t> result;
    for (const ChunkedStage& worker : workers_) result.push_back(worker.free_at);
    return result;
  }

 private:
  // The pass at a place of the order of forward passes.
  [[nodiscard]] ChunkPass pass_at(std::int64_t place) const {
    const std::int64_t first = place / (chunks_ * group_) * group_;
    const std::int64_t size = std::min(group_, passes_ / chunks_ - first);
    const std::int64_t within = place - first * chunks_;
    return {within / size, first + within % size};
  }

  // All passes whose inputs are there.
  void advance(std::size_t s) {
    ChunkedStage& self = workers_[s];
    while (self.backwards < passes_) {
      const bool forward = self.forwards < passes_ && self.forwards <= self.backwards + self.warmup;
      if (!(forward ? run_forward(s) : run_backward(s))) return;
    }
  }

  bool run_forward(std::size_t s) {
    ChunkedStage& self = workers_[s];
    const ChunkPass pass = pass_at(self.forwards);
    const std::int64_t ready = self.inputs(pass.chunk, pass.microbatch);
    if (ready == kNotHere) return false;
    self.free_at = std::max(self.free_at, ready) + at(self.passes, pass.chunk).forward;
    ++self.forwards;
    const bool is_last = s + 1 == workers_.size();
    if (is_last && pass.chunk + 1 == chunks_) return true;
    ChunkedStage& next = is_last ? workers_.front() : workers_[s + 1];
    ChunkLink& link = links_[s];
    const std::int64_t arrives = send(self.free_at, link.price, link.down_free_at);
    next.inputs(is_last ? pass.chunk + 1 : pass.chunk, pass.microbatch) = arrives;
    if (sends_block_) self.free_at = arrives;
    return true;
  }

  bool run_backward(std::size_t s) {
    ChunkedStage& self = workers_[s];
    ChunkPass pass = pass_at(self.backwards);
    pass.chunk = chunks_ - 1 - pass.chunk;
    const std::int64_t ready = self.output_grads(pass.chunk, pass.microbatch);
    if (ready == kNotHere) return false;
    self.free_at = std::max(self.free_at, ready) + at(self.passes, pass.chunk).backward;
    ++self.backwards;
    if (s == 0 && pass.chunk == 0) return true;
    const std::size_t before = s == 0 ? workers_.size() - 1 : s - 1;
    ChunkLink& link = links_[before];
    const std::int64_t arrives = send(self.free_at, link.price, link.up_free_at);
    workers_[before].output_grads(s == 0 ? pass.chunk - 1 : pass.chunk, pass.microbatch) = arrives;
    return true;
  }

  // When it arrives.
  static std::int64_t send(std::int64_t from, const Price& price, std::int64_t& free_at) {
    const std::int64_t start = std::max(from, free_at);
    free_at = start + price.occupancy;
    return start + price.latency;
  }

  std::int64_t chunks_;
  std::int64_t passes_;
  std::int64_t group_;
  bool sends_block_;
  std::vector<ChunkedStage> workers_;
  std::vector<ChunkLink> links_;  // [stage] to the next one; of the last one around to the first
};

}  // namespace

std::vector<ChunkTime> chunk_times(const Program& program, const ChainStage& stage) {
  const auto work_before = [&](int block) {
    return program.work_before.empty() ? block : program.work_before(stage.option, block);
  };
  const auto chunks = static_cast<int>(program.interleaving.chunks);
  const int blocks = program.blocks_between(stage.first, stage.last);
  int first = program.block_at(stage.first);
  const auto all = static_cast<double>(work_before(first + blocks) - work_before(first));
  std::vector<ChunkTime> times;
  for (int c = 0; c < chunks; ++c) {
    const int last = first + chunk_size(blocks, chunks, c);
    const auto own = static_cast<double>(work_before(last) - work_before(first));
    const auto pass = [&](std::int64_t mean) {
      return static_cast<std::int64_t>(static_cast<double>(mean * chunks) * own / all);
    };
    times.push_back({pass(stage.candidate.F), pass(stage.candidate.T - stage.candidate.F)});
    first = last;
  }
  return times;
}

std::vector<std::int64_t> interleaved_ends(const Program& program, const Chain& chain) {
  return InterleavedRun(program, chain).ends();
}

}  // namespace tangram::chain
