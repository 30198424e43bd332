#include "overlapped_timetable.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

// When inputs that wait for their stage came, in their order.
class Inputs {
 public:
  explicit Inputs(std::int64_t most) : times_(static_cast<std::size_t>(most), 0) {}

  void push(std::int64_t time) { times_[place_of(count_++)] = time; }
  std::int64_t pop() {
    const std::int64_t time = times_[first_];
    first_ = place_of(1);
    --count_;
    return time;
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::int64_t time(std::size_t number) const { return times_[place_of(number)]; }
  void delay(std::int64_t time) {
    for (std::int64_t& each : times_) each += time;
  }

 private:
  [[nodiscard]] std::size_t place_of(std::size_t number) const {
    const std::size_t place = first_ + number;
    return place < times_.size() ? place : place - times_.size();
  }

  std::vector<std::int64_t> times_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// One stage on its way through the iteration.
struct Executor {
  std::int64_t forward = 0;   // of one microbatch
  std::int64_t backward = 0;  // zero bubble: to the gradient of its input
  std::int64_t weights = 0;   // of what that puts off
  std::int64_t behind = 0;    // what synchronises once all are done
  std::int64_t in_flight = 1;
  std::int64_t most_held = 1;  // of those in flight, and those whose weight gradients wait
  Inputs inputs;
  Price next = {};            // boundary to the next stage
  std::int64_t forwards = 0;  // done so far
  std::int64_t backwards = 0;
  std::int64_t released = 0;  // with their weight gradients, where these are put off
  std::int64_t free_at = 0;
  std::int64_t down_free_at = 0;  // the link to the next stage
  std::int64_t up_free_at = 0;    // the link back from there
  std::int64_t gradient_at = 0;   // of its output, in the round that it is needed in
};

// Rounds behind which all is as behind an earlier one, only later. All that follows repeats then, too, as long as each
// round has a forward pass of each stage.
class Repetition {
 public:
  // Behind each round. True: from now on `rounds` more take `time` more.
  bool look(const std::vector<Executor>& executors) {
    ++round_;
    if (gap_of(executors) == gap_ && is_as_noted(executors)) return true;
    if (round_ == next_note_) note(executors);
    return false;
  }

  [[nodiscard]] std::int64_t rounds() const { return round_ - noted_round_; }
  [[nodiscard]] std::int64_t time(const std::vector<Executor>& executors) const {
    return executors.front().free_at - noted_at_;
  }

 private:
  // What differs first, most often.
  static std::int64_t gap_of(const std::vector<Executor>& executors) {
    return executors.front().free_at - executors.back().free_at;
  }

  template <typename Visit>
  static void visit_state(const std::vector<Executor>& executors, const Visit& visit) {
    const std::int64_t now = executors.front().free_at;
    for (const Executor& stage : executors) {
      visit(stage.free_at - now);
      if (stage.weights > 0) visit(stage.backwards - stage.released);
      if (&stage != &executors.back()) {
        visit(stage.down_free_at - now);
        visit(stage.up_free_at - now);
      }
      for (std::size_t i = 0; i < stage.inputs.count(); ++i) visit(stage.inputs.time(i) - now);
    }
  }

  [[nodiscard]] bool is_as_noted(const std::vector<Executor>& executors) const {
    std::size_t number = 0;
    bool same = true;
    visit_state(executors, [&](std::int64_t value) { same = same && at(noted_, number++) == value; });
    return same;
  }

  void note(const std::vector<Executor>& executors) {
    noted_.clear();
    visit_state(executors, [&](std::int64_t value) { noted_.push_back(value); });
    gap_ = gap_of(executors);
    noted_at_ = executors.front().free_at;
    noted_round_ = round_;
    next_note_ *= 2;
  }

  std::int64_t round_ = 0;
  std::int64_t next_note_ = 1;
  std::int64_t noted_round_ = 0;
  std::int64_t noted_at_ = 0;
  std::int64_t gap_ = INT64_MIN;
  std::vector<std::int64_t> noted_;
};

// In rounds, each of a forward pass and the backward pass that makes room for the next one, of every stage.
class Run {
 public:
  Run(const Program& program, const Chain& chain) : microbatches_(program.microbatches) {
    std::int64_t before = microbatches_;  // held by the stage in front
    for (std::size_t s = 0; s < chain.stages.size(); ++s) {
      const Candidate& plan = chain.stages[s].candidate;
      Executor executor{.inputs = Inputs(s == 0 ? 0 : before)};
      executor.forward = plan.F;
      executor.backward = plan.passage() - plan.F;
      executor.weights = plan.W;
      executor.behind = plan.A - plan.T;
      executor.in_flight = before = std::min(chain.in_flight[s], before);
      executor.most_held = std::max(chain.in_flight[s], plan.n_max);
      if (s + 1 < chain.stages.size()) executor.next = boundary_after(program, chain, s);
      executors_.push_back(std::move(executor));
    }
  }

  // When all stages have synchronised. Where that is not below `cutoff`, anything from there to the truth.
  std::int64_t end(std::int64_t cutoff) {
    for (std::size_t s = 0; s < executors_.size(); ++s) warm_up(s);
    const Executor& first = executors_.front();
    Repetition repetition;
    bool repeats = false;
    while (first.backwards < microbatches_) {
      round();
      if (first.backwards % kRoundsBetweenLooks == 0 && least_end() >= cutoff) break;
      if (repeats || first.forwards == microbatches_ || !repetition.look(executors_)) continue;
      skip(repetition);
      repeats = true;
    }
    return least_end();
  }

 private:
  static constexpr std::int64_t kRoundsBetweenLooks = 4;

  void warm_up(std::size_t s) {
    while (executors_[s].forwards + 1 < executors_[s].in_flight) run_forward(s);
  }

  // No stage holds more than the one in front of it, so that its input is there.
  void round() {
    for (std::size_t s = 0; s < executors_.size(); ++s) {
      if (executors_[s].forwards < microbatches_) run_forward(s);
    }
    for (std::size_t s = executors_.size(); s-- > 0;) run_backward(s);
  }

  void run_forward(std::size_t s) {
    Executor& stage = executors_[s];
    const std::int64_t ready = s == 0 ? 0 : stage.inputs.pop();
    if (stage.weights > 0) work_out_weights(stage, ready, /*forward=*/true);
    stage.free_at = std::max(stage.free_at, ready) + stage.forward;
    ++stage.forwards;
    if (s + 1 < executors_.size()) executors_[s + 1].inputs.push(send(stage.free_at, stage.next, stage.down_free_at));
  }

  void run_backward(std::size_t s) {
    Executor& stage = executors_[s];
    if (stage.weights > 0) work_out_weights(stage, stage.gradient_at, /*forward=*/false);
    stage.free_at = std::max(stage.free_at, stage.gradient_at) + stage.backward;
    ++stage.backwards;
    if (s == 0) return;
    Executor& before = executors_[s - 1];
    before.gradient_at = send(stage.free_at, before.next, before.up_free_at);
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

  // When it arrives.
  static std::int64_t send(std::int64_t from, const Price& price, std::int64_t& free_at) {
    const std::int64_t start = std::max(from, free_at);
    free_at = start + price.occupancy;
    return start + price.latency;
  }

  void skip(const Repetition& repetition) {
    const std::int64_t times = (microbatches_ - executors_.front().forwards) / repetition.rounds();
    const std::int64_t rounds = times * repetition.rounds();
    const std::int64_t later = times * repetition.time(executors_);
    for (Executor& stage : executors_) {
      for (std::int64_t* count : {&stage.forwards, &stage.backwards, &stage.released}) *count += rounds;
      for (std::int64_t* time : {&stage.free_at, &stage.down_free_at, &stage.up_free_at}) *time += later;
      stage.inputs.delay(later);
    }
  }

  // If no stage waits for anything any more.
  [[nodiscard]] std::int64_t least_end() const {
    std::int64_t end = 0;
    for (const Executor& stage : executors_) {
      const std::int64_t left = (microbatches_ - stage.forwards) * stage.forward +
                                (microbatches_ - stage.backwards) * stage.backward +
                                (microbatches_ - stage.released) * stage.weights;
      end = std::max(end, stage.free_at + left + stage.behind);
    }
    return end;
  }

  std::int64_t microbatches_;
  std::vector<Executor> executors_;
};

}  // namespace

std::int64_t overlapped_end(const Program& program, const Chain& chain, std::int64_t cutoff) {
  return Run(program, chain).end(cutoff);
}

}  // namespace tangram::chain
