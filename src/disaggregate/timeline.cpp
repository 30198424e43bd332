#include "tangram/disaggregate/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "resources.hpp"
#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

namespace {

// The segments of one pass, kernel by kernel.
class PassSegments {
 public:
  PassSegments(const Problem& problem, const Placement& placement, int phase)
      : problem_(problem),
        placement_(placement),
        open_(problem.classes.size(), -1),
        last_(problem.classes.size(), -1),
        arrival_(problem.buffers.size(), problem.classes.size(), -1),
        reads_(problem.kernels.size()),
        writes_(problem.kernels.size()) {
    for (int u = 0; u < static_cast<int>(problem.buffers.size()); ++u) {
      const Buffer& buffer = at(problem.buffers, u);
      if (buffer.kind != BufferKind::kMessage) continue;
      at(writes_, buffer.writer).push_back(u);
      for (const int reader : buffer.readers) at(reads_, reader).push_back(u);
    }
    for (int k = 0; k < problem.kernel_count(); ++k) {
      if (at(problem.kernels, k).phase == phase) run(k);
    }
  }

  [[nodiscard]] std::vector<streams::Segment> take() && { return std::move(segments_); }

 private:
  void run(int kernel) {
    const int on = at(placement_, kernel);
    for (const int u : at(reads_, kernel)) take_in(u, on);
    at(segments_, open_segment(on)).seconds += at(at(problem_.kernels, kernel).seconds, on);
    for (const int u : at(writes_, kernel)) send(u, on);
  }

  // Behind what the class ran before.
  int open_segment(int on) {
    int& open = at(open_, on);
    if (open >= 0) return open;
    open = add({on, 0, {}});
    if (at(last_, on) >= 0) at(segments_, open).after.push_back(at(last_, on));
    return at(last_, on) = open;
  }

  void take_in(int message, int on) {
    const int arrival = std::exchange(arrival_(message, on), -1);
    if (arrival < 0) return;
    at(open_, on) = -1;
    const int from = at(placement_, at(problem_.buffers, message).writer);
    streams::Segment& segment = at(segments_, open_segment(on));
    segment.after.push_back(arrival);
    segment.seconds += problem_.links(from, on).gpu_seconds;
  }

  void send(int message, int from) {
    const Buffer& buffer = at(problem_.buffers, message);
    const double share =
        problem_.messages_of(buffer) / at(problem_.phases, at(problem_.kernels, buffer.writer).phase).passes;
    for (const int to : receivers(problem_, placement_, buffer)) {
      const Link& link = problem_.links(from, to);
      const int sender = open_segment(from);
      at(segments_, sender).seconds += share * link.gpu_seconds;
      at(open_, from) = -1;
      const int over = problem_.class_count() * (1 + from) + to;
      const int sent = add({over, share * link.seconds(buffer.bytes), {sender}});
      if (problem_.is_within_pass(buffer)) {
        arrival_(message, to) = sent;
      } else {
        add({to, share * link.gpu_seconds, {sent}});
      }
    }
  }

  int add(streams::Segment segment) {
    segments_.push_back(std::move(segment));
    return static_cast<int>(segments_.size()) - 1;
  }

  const Problem& problem_;
  const Placement& placement_;
  std::vector<streams::Segment> segments_;
  std::vector<int> open_;  // by class: the segment that the next kernel joins; -1: none
  std::vector<int> last_;  // by class
  Grid<int> arrival_;      // by message and class: the segment that brings it, until it is taken in
  std::vector<std::vector<int>> reads_;
  std::vector<std::vector<int>> writes_;
};

// Which share each of the next passes belongs to: every share is at most one pass behind.
std::vector<int> turns_of(const std::vector<Share>& placements) {
  if (placements.size() == 1) return {};
  constexpr int kTurns = 128;
  std::vector<int> turns;
  std::vector<double> due(placements.size(), 0);
  for (int i = 0; i < kTurns; ++i) {
    for (std::size_t j = 0; j < due.size(); ++j) due[j] += placements[j].share;
    const auto next = std::ranges::max_element(due);
    *next -= 1;
    turns.push_back(static_cast<int>(next - due.begin()));
  }
  return turns;
}

// Seconds of a kernel on its fastest class, in the mean.
double mean_seconds(const Problem& problem) {
  double sum = 0;
  for (const Kernel& kernel : problem.kernels) sum += *std::ranges::min_element(kernel.seconds);
  return sum / static_cast<double>(problem.kernels.size());
}

}  // namespace

streams::Schedule schedule_of(const Problem& problem, const std::vector<Share>& placements, int rounds) {
  streams::Schedule schedule;
  for (const GpuClass& c : problem.classes) schedule.servers.push_back(c.count);
  for (const Link& link : problem.links) schedule.servers.push_back(link.lanes);
  for (int f = 0; f < static_cast<int>(problem.phases.size()); ++f) {
    const Phase& phase = at(problem.phases, f);
    streams::PassKind kind;
    for (const Share& part : placements) kind.ways.push_back(PassSegments(problem, part.placement, f).take());
    kind.turns = turns_of(placements);
    kind.passes = std::max<std::int64_t>(1, std::llround(rounds * phase.passes));
    kind.in_flight = static_cast<int>(std::min<std::int64_t>(phase.in_flight, kind.passes));
    if (!kind.ways.front().empty()) schedule.kinds.push_back(std::move(kind));
  }
  return schedule;
}

double simulated_period(const Problem& problem, const std::vector<Share>& placements, int rounds) {
  // So many in flight that all places are taken several times.
  for (const Phase& phase : problem.phases) {
    constexpr int kMostInFlight = 1024;  // more are as good as any number
    const int in_flight = std::min(phase.in_flight, kMostInFlight);
    rounds = std::max(rounds, static_cast<int>(std::ceil(4 * in_flight / phase.passes)));
  }
  const streams::Schedule schedule = schedule_of(problem, placements, rounds);
  const streams::Run run = streams::run(schedule);
  if (run.passes.size() > 1) return run.end / rounds;
  return problem.phases.front().passes * run.mean_latency(0) / schedule.kinds.front().in_flight;
}

SimulatedSolution solve_simulated(const Problem& problem, const SolverEffort& effort, int rounds) {
  SimulatedSolution best;
  const double kernel = mean_seconds(problem);
  double bound = 0;
  for (const double dearer : {0.0, 0.25, 1.0, 4.0}) {
    Problem with_cost = problem;
    for (Link& link : with_cost.links) link.gpu_seconds += dearer * kernel;
    Solution solution = solve(with_cost, Objective::kThroughput, effort);
    if (dearer == 0) bound = solution.bound;
    if (!solution.found) continue;
    const double simulated = simulated_period(problem, {{1, solution.placement}}, rounds);
    if (simulated >= best.simulated) continue;
    best = {std::move(solution), simulated};
  }
  best.solution.bound = bound;
  if (!best.solution.found) return best;
  best.solution.usage = usage_of(problem, best.solution.placement);
  best.solution.value = best.solution.usage.period;
  best.solution.proven = false;
  return best;
}

}  // namespace tangram::disaggregate
