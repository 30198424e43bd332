#include "zero_bubble_timetable.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

constexpr std::int64_t kNotKnown = -1;

struct HalvedLink {
  Price price;
  std::int64_t down_free_at = 0;
  std::int64_t up_free_at = 0;
};

// One stage on its way through the iteration.
struct HalvingStage {
  std::int64_t forward = 0;  // of one microbatch
  std::int64_t backward = 0;
  std::int64_t weights = 0;
  std::int64_t in_flight = 1;
  std::int64_t most_held = 1;
  std::int64_t forwards = 0;  // done so far
  std::int64_t backwards = 0;
  std::int64_t released = 0;
  std::int64_t free_at = 0;
  std::vector<std::int64_t> inputs;        // [microbatch] when it is here
  std::vector<std::int64_t> output_grads;  // [microbatch] when the gradient of its output is here
};

class ZeroBubbleRun {
 public:
  ZeroBubbleRun(const Program& program, const Chain& chain) : microbatches_(program.microbatches) {
    const auto count = static_cast<std::size_t>(microbatches_);
    for (std::size_t s = 0; s < chain.stages.size(); ++s) {
      const bool is_last = s + 1 == chain.stages.size();
      const Candidate& plan = chain.stages[s].candidate;
      HalvingStage worker;
      worker.forward = plan.F;
      worker.backward = plan.passage() - plan.F;
      worker.weights = plan.W;
      worker.in_flight = std::min(chain.in_flight[s], microbatches_);
      worker.most_held = std::max(worker.in_flight, std::min(plan.n_max, microbatches_));
      worker.inputs.assign(count, s == 0 ? 0 : kNotKnown);
      worker.output_grads.assign(count, is_last ? 0 : kNotKnown);
      workers_.push_back(std::move(worker));
      links_.push_back({is_last ? Price{} : boundary_after(program, chain, s)});
    }
  }

  std::vector<std::int64_t> ends() {
    while (workers_.front().backwards < microbatches_) {
      for (std::size_t s = 0; s < workers_.size(); ++s) advance(s);
      for (std::size_t s = workers_.size(); s-- > 0;) advance(s);
    }
    std::vector<std::int64_t> result;
    for (const HalvingStage& worker : workers_) {
      result.push_back(worker.free_at + (microbatches_ - worker.released) * worker.weights);
    }
    return result;
  }

 private:
  // All passes of which it is known when they can start.
  void advance(std::size_t s) {
    HalvingStage& self = workers_[s];
    while (self.backwards < microbatches_) {
      const bool forward = self.forwards < microbatches_ && self.forwards - self.backwards < self.in_flight;
      const std::int64_t ready = forward ? at(self.inputs, self.forwards) : at(self.output_grads, self.backwards);
      if (ready == kNotKnown) return;
      work_out_weights(self, ready, forward);
      self.free_at = std::max(self.free_at, ready) + (forward ? self.forward : self.backward);
      if (forward) {
        send_down(s);
        ++self.forwards;
      } else {
        send_up(s);
        ++self.backwards;
      }
    }
  }

  // Those that start before the next pass can, and those that have to make room for it.
  static void work_out_weights(HalvingStage& self, std::int64_t ready, bool forward) {
    while (self.released < self.backwards) {
      const bool is_full = forward && self.forwards - self.released >= self.most_held;
      if (self.free_at >= ready && !is_full) return;
      self.free_at += self.weights;
      ++self.released;
    }
  }

  void send_down(std::size_t s) {
    if (s + 1 == workers_.size()) return;
    HalvedLink& link = links_[s];
    at(workers_[s + 1].inputs, workers_[s].forwards) = send(workers_[s].free_at, link.price, link.down_free_at);
  }

  void send_up(std::size_t s) {
    if (s == 0) return;
    HalvedLink& link = links_[s - 1];
    at(workers_[s - 1].output_grads, workers_[s].backwards) = send(workers_[s].free_at, link.price, link.up_free_at);
  }

  // When it arrives.
  static std::int64_t send(std::int64_t from, const Price& price, std::int64_t& free_at) {
    const std::int64_t start = std::max(from, free_at);
    free_at = start + price.occupancy;
    return start + price.latency;
  }

  std::int64_t microbatches_;
  std::vector<HalvingStage> workers_;
  std::vector<HalvedLink> links_;  // [stage] to the next one
};

}  // namespace

std::vector<std::int64_t> zero_bubble_ends(const Program& program, const Chain& chain) {
  return ZeroBubbleRun(program, chain).ends();
}

}  // namespace tangram::chain
