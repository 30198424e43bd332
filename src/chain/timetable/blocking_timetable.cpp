#include "blocking_timetable.hpp"

#include <algorithm>

namespace tangram::chain {

namespace {

constexpr std::int64_t kNobody = -1;

// Two stages at their boundary.
struct Meeting {
  std::int64_t latency = 0;
  std::int64_t front_came = kNobody;
  std::int64_t back_came = kNobody;
  std::int64_t front_goes = kNobody;  // when the last meeting was over, for who has not left it yet
  std::int64_t back_goes = kNobody;
};

enum class Step : std::uint8_t { kReceive, kForward, kMeetBehind, kBackward, kMeetInFront, kDone };

struct Worker {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t warmup = 0;
  std::int64_t forwards = 0;  // done so far
  std::int64_t backwards = 0;
  std::int64_t met_behind = 0;
  std::int64_t now = 0;
  std::int64_t last_backward = 0;
  Step step = Step::kReceive;
};

class Meetings {
 public:
  Meetings(const Program& program, const Chain& chain) : microbatches_(program.microbatches) {
    const std::size_t count = chain.stages.size();
    for (std::size_t s = 0; s < count; ++s) {
      const Candidate& plan = chain.stages[s].candidate;
      Worker worker;
      worker.forward = plan.F;
      worker.backward = plan.T - plan.F;
      worker.warmup = std::min(microbatches_, static_cast<std::int64_t>(count - 1 - s));
      workers_.push_back(worker);
      if (s + 1 < count) boundaries_.push_back({.latency = boundary_after(program, chain, s).latency});
    }
  }

  std::vector<std::int64_t> ends() {
    while (std::ranges::any_of(workers_, [](const Worker& worker) { return worker.step != Step::kDone; })) {
      for (std::size_t s = 0; s < workers_.size(); ++s) advance(s);
      for (std::size_t s = workers_.size(); s-- > 0;) advance(s);
    }
    std::vector<std::int64_t> result;
    for (const Worker& worker : workers_) result.push_back(worker.last_backward);
    return result;
  }

 private:
  void advance(std::size_t s) {
    while (workers_[s].step != Step::kDone && take(s)) {
    }
  }

  // False: a neighbour has to come first.
  bool take(std::size_t s) {
    Worker& self = workers_[s];
    switch (self.step) {
      case Step::kReceive:
        if (!meet_in_front(s)) return false;
        self.step = Step::kForward;
        return true;
      case Step::kForward:
        self.now += self.forward;
        ++self.forwards;
        self.step = Step::kMeetBehind;
        return true;
      case Step::kMeetBehind:
        if (!meet_behind(s)) return false;
        ++self.met_behind;
        self.step = after_meeting_behind(self);
        return true;
      case Step::kBackward:
        self.now += self.backward;
        self.last_backward = self.now;
        ++self.backwards;
        self.step = Step::kMeetInFront;
        return true;
      case Step::kMeetInFront:
        if (!meet_in_front(s)) return false;
        self.step = after_gradient(self);
        return true;
      case Step::kDone: break;
    }
    return false;
  }

  [[nodiscard]] Step after_meeting_behind(const Worker& self) const {
    if (self.met_behind > self.backwards + self.warmup) return Step::kBackward;
    return self.forwards < microbatches_ ? Step::kReceive : Step::kMeetBehind;
  }

  [[nodiscard]] Step after_gradient(const Worker& self) const {
    if (self.backwards == microbatches_) return Step::kDone;
    return self.forwards < microbatches_ ? Step::kForward : Step::kMeetBehind;
  }

  bool meet_in_front(std::size_t s) {
    if (s == 0) return true;
    Meeting& meeting = boundaries_[s - 1];
    return meet(meeting, meeting.back_came, meeting.front_came, meeting.back_goes, meeting.front_goes, workers_[s].now);
  }

  bool meet_behind(std::size_t s) {
    if (s + 1 == workers_.size()) return true;
    Meeting& meeting = boundaries_[s];
    return meet(meeting, meeting.front_came, meeting.back_came, meeting.front_goes, meeting.back_goes, workers_[s].now);
  }

  // Who comes second sets the end for both.
  static bool meet(const Meeting& meeting, std::int64_t& came, std::int64_t& other_came, std::int64_t& goes,
                   std::int64_t& other_goes, std::int64_t& now) {
    if (goes != kNobody) {
      now = goes;
      goes = kNobody;
      return true;
    }
    if (other_came == kNobody) {
      came = now;
      return false;
    }
    now = std::max(now, other_came) + meeting.latency;
    other_came = kNobody;
    other_goes = now;
    return true;
  }

  std::int64_t microbatches_;
  std::vector<Worker> workers_;
  std::vector<Meeting> boundaries_;
};

}  // namespace

std::vector<std::int64_t> blocking_ends(const Program& program, const Chain& chain) {
  return Meetings(program, chain).ends();
}

}  // namespace tangram::chain
