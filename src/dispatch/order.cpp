#include "order.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

std::vector<Step> steps_of(const Schedule& schedule, int phase) {
  std::vector<Step> steps;
  std::map<std::pair<int, int>, int> last_of;  // by device and stream: step
  std::map<int, int> end_of;                   // by segment: its last step
  std::vector<int> packed(schedule.copies.size(), -1);
  std::vector<std::pair<int, int>> unpacks;  // step and copy
  for (int s = 0; s < static_cast<int>(schedule.segments.size()); ++s) {
    const Segment& segment = at(schedule.segments, s);
    if (segment.phase != phase) continue;
    std::vector<int> waits;
    for (const int w : segment.waits) {
      if (const auto end = end_of.find(w); end != end_of.end()) waits.push_back(end->second);
    }
    const std::pair<int, int> stream{segment.device, segment.stream};
    const auto add = [&](Step::Kind kind, int copy, const std::string& kernel) {
      Step step{kind, s, copy, kernel, std::exchange(waits, {})};
      if (const auto last = last_of.find(stream); last != last_of.end()) step.after.push_back(last->second);
      last_of[stream] = end_of[s] = static_cast<int>(steps.size());
      steps.push_back(std::move(step));
      return last_of[stream];
    };
    for (const int c : segment.takes) unpacks.emplace_back(add(Step::Kind::kUnpack, c, ""), c);
    for (const std::string& kernel : segment.kernels) add(Step::Kind::kKernel, -1, kernel);
    for (const int c : segment.sends) at(packed, c) = add(Step::Kind::kPack, c, "");
  }
  for (const auto& [step, copy] : unpacks) {
    if (at(packed, copy) >= 0) at(steps, step).after.push_back(at(packed, copy));
  }
  return steps;
}

namespace {

/// Depth first through what steps wait for.
class Walk {
 public:
  Walk(const std::vector<Step>& steps, std::mt19937_64* random) : steps_(steps), random_(random) {
    state_.assign(steps.size(), State::kNew);
  }

  /// False: the step waits for itself.
  bool visit(int first) {
    std::vector<Open> open;
    if (!enter(first, open)) return true;
    while (!open.empty()) {
      Open& top = open.back();
      if (top.next == top.after.size()) {
        at(state_, top.step) = State::kDone;
        order.push_back(top.step);
        open.pop_back();
        continue;
      }
      const int before = top.after[top.next++];
      if (at(state_, before) == State::kOpen) return false;
      enter(before, open);
    }
    return true;
  }

  std::vector<int> order;

 private:
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  struct Open {
    int step = 0;
    std::vector<int> after;
    std::size_t next = 0;
  };

  bool enter(int step, std::vector<Open>& open) {
    if (at(state_, step) != State::kNew) return false;
    at(state_, step) = State::kOpen;
    Open entered{step, at(steps_, step).after, 0};
    if (random_ != nullptr) std::ranges::shuffle(entered.after, *random_);
    open.push_back(std::move(entered));
    return true;
  }

  const std::vector<Step>& steps_;
  std::mt19937_64* random_;
  std::vector<State> state_;
};

}  // namespace

int deadlocked(const std::vector<Step>& steps) {
  Walk walk(steps, nullptr);
  for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
    if (!walk.visit(i)) return i;
  }
  return -1;
}

std::vector<int> random_order(const std::vector<Step>& steps, std::mt19937_64& random) {
  std::vector<int> targets(steps.size());
  std::iota(targets.begin(), targets.end(), 0);
  std::ranges::shuffle(targets, random);
  Walk walk(steps, &random);
  for (const int target : targets) walk.visit(target);
  return std::move(walk.order);
}

}  // namespace tangram::dispatch
