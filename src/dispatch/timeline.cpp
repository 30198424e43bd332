#include "tangram/dispatch/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/streams/streams.hpp"

namespace tangram::dispatch {

namespace {

int link_resource(const Schedule& schedule, int from, int to) {
  return static_cast<int>(schedule.devices.size()) * (1 + from) + to;
}

/// By resource: how many there are alike.
std::vector<int> servers_of(const Schedule& schedule) {
  std::vector<int> servers;
  const auto count = schedule.devices.size();
  for (const Device& device : schedule.devices) servers.push_back(device.count);
  servers.resize(count + count * count, 1);
  for (const Lanes& lanes : schedule.links) at(servers, link_resource(schedule, lanes.from, lanes.to)) = lanes.count;
  return servers;
}

/// What a segment of a simulated pass stands for.
struct Origin {
  int segment = -1;
  int copy = -1;
};

/// Segments of a phase, and the messages that they send. `origins`, unless it is null, has one for each.
std::vector<streams::Segment> pass_of(const Schedule& schedule, int phase, std::vector<Origin>* origins = nullptr) {
  std::vector<streams::Segment> segments;
  std::map<int, int> place_of;                 // by segment of the schedule
  std::map<std::pair<int, int>, int> last_of;  // by device and stream
  std::map<int, int> sent;                     // by copy: the segment that brings it
  for (int s = 0; s < static_cast<int>(schedule.segments.size()); ++s) {
    const Segment& segment = at(schedule.segments, s);
    if (segment.phase != phase) continue;
    streams::Segment added{segment.device, segment.seconds, {}};
    const auto [last, is_first] = last_of.try_emplace({segment.device, segment.stream}, -1);
    if (!is_first) added.after.push_back(last->second);
    for (const int w : segment.waits) added.after.push_back(place_of.at(w));
    for (const int c : segment.takes) {
      added.after.push_back(sent.at(c));
      added.seconds += at(schedule.copies, c).gpu_seconds;
    }
    for (const int c : segment.sends) added.seconds += at(schedule.copies, c).gpu_seconds;
    const int place = static_cast<int>(segments.size());
    last->second = place_of[s] = place;
    segments.push_back(std::move(added));
    if (origins != nullptr) origins->push_back({.segment = s});
    for (const int c : segment.sends) {
      const Copy& copy = at(schedule.copies, c);
      sent[c] = static_cast<int>(segments.size());
      segments.push_back({link_resource(schedule, copy.from, copy.to), copy.seconds, {place}});
      if (origins != nullptr) origins->push_back({.copy = c});
    }
  }
  return segments;
}

/// Of one pass alone.
double latency_of(std::vector<streams::Segment> segments, const std::vector<int>& servers) {
  if (segments.empty()) return 0;
  streams::PassKind kind;
  kind.ways.push_back(std::move(segments));
  kind.passes = 1;
  streams::Schedule one;
  one.servers = servers;
  one.kinds.push_back(std::move(kind));
  return streams::run(one).end;
}

double allowed_period(const Schedule& schedule) {
  const std::vector<int> servers = servers_of(schedule);
  std::vector<double> busy(servers.size(), 0);
  double period = 0;
  for (int f = 0; f < static_cast<int>(schedule.phases.size()); ++f) {
    const Phase& phase = at(schedule.phases, f);
    std::vector<streams::Segment> pass = pass_of(schedule, f);
    for (const streams::Segment& segment : pass) at(busy, segment.resource) += phase.passes * segment.seconds;
    period = std::max(period, phase.passes * latency_of(std::move(pass), servers) / phase.in_flight);
  }
  for (std::size_t r = 0; r < busy.size(); ++r) period = std::max(period, busy[r] / servers[r]);
  return period;
}

/// Resources are the devices, then the links by sending and receiving device; kinds the phases.
streams::Schedule timeline_of(const Schedule& schedule, double rounds) {
  streams::Schedule result;
  result.servers = servers_of(schedule);
  for (int f = 0; f < static_cast<int>(schedule.phases.size()); ++f) {
    const Phase& phase = at(schedule.phases, f);
    streams::PassKind kind;
    kind.ways.push_back(pass_of(schedule, f));
    kind.passes = std::max<std::int64_t>(1, std::llround(rounds * phase.passes));
    kind.in_flight = static_cast<int>(std::min<std::int64_t>(phase.in_flight, kind.passes));
    if (!kind.ways.front().empty()) result.kinds.push_back(std::move(kind));
  }
  return result;
}

}  // namespace

Periods periods_of(Schedule schedule, int in_flight, int least_rounds) {
  double wanted = least_rounds;
  double passes = 0;  // of a round
  for (Phase& phase : schedule.phases) {
    if (in_flight > 0) phase.in_flight = in_flight;
    constexpr int kMostInFlight = 1024;  // more are as good as any number
    const int taken = std::min(phase.in_flight, kMostInFlight);
    wanted = std::max(wanted, std::ceil(4 * taken / phase.passes));  // all places several times
    passes += phase.passes;
  }
  constexpr double kMostPasses = 1e6;  // some seconds
  const double rounds = std::max(1.0, std::floor(std::min(wanted, kMostPasses / passes)));
  Periods result;
  result.allowed = allowed_period(schedule);
  const streams::Schedule timeline = timeline_of(schedule, rounds);
  const streams::Run run = streams::run(timeline);
  result.simulated = run.passes.size() > 1
                         ? run.end / rounds
                         : schedule.phases.front().passes * run.mean_latency(0) / timeline.kinds.front().in_flight;
  result.simulated = std::max(result.simulated, result.allowed);
  return result;
}

Recording recorded(const Schedule& schedule, double rounds) {
  const streams::Run run = streams::run(timeline_of(schedule, rounds), streams::Priority::kOldestPass, true);
  std::vector<std::vector<Origin>> origins;  // by kind: phases without segments have none
  for (int f = 0; f < static_cast<int>(schedule.phases.size()); ++f) {
    std::vector<Origin> of_phase;
    if (!pass_of(schedule, f, &of_phase).empty()) origins.push_back(std::move(of_phase));
  }
  Recording result;
  result.end = run.end;
  for (const streams::Work& work : run.work) {
    const Origin& origin = at(at(origins, work.kind), work.segment);
    result.work.push_back({origin.segment, origin.copy, work.pass, work.server, work.begin, work.end});
  }
  return result;
}

}  // namespace tangram::dispatch
