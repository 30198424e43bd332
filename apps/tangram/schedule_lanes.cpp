#include "schedule_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "page_text.hpp"
#include "tangram/base/at.hpp"

namespace tangram::app {

namespace {

constexpr int kLanesWanted = 24;         // what fits on a screen
constexpr std::size_t kMostLanes = 128;  // however many streams and links there are
constexpr std::size_t kNameRoom = 24;

using Pair = std::pair<int, int>;

std::set<int> streams_of(const dispatch::Schedule& schedule, int device) {
  std::set<int> streams;
  for (const dispatch::Segment& segment : schedule.segments) {
    if (segment.device == device) streams.insert(segment.stream);
  }
  return streams;
}

std::set<Pair> pairs_of(const dispatch::Schedule& schedule) {
  std::set<Pair> pairs;
  for (const dispatch::Copy& copy : schedule.copies) pairs.insert({copy.from, copy.to});
  return pairs;
}

/// Lanes if one of everything is drawn.
int least_lanes(const dispatch::Schedule& schedule) {
  std::size_t lanes = pairs_of(schedule).size();
  for (int d = 0; d < static_cast<int>(schedule.devices.size()); ++d) lanes += streams_of(schedule, d).size();
  return static_cast<int>(std::max<std::size_t>(1, lanes));
}

std::string heading_of(const std::string& name, int shown, int count) {
  if (shown == count) return name;
  return shown == 1 ? fmt::format("{}, one of {} alike", name, count)
                    : fmt::format("{}, {} of {} alike", name, shown, count);
}

}  // namespace

int links_between(const dispatch::Schedule& schedule, int from, int to) {
  for (const dispatch::Lanes& lanes : schedule.links) {
    if (lanes.from == from && lanes.to == to) return lanes.count;
  }
  return 1;
}

ScheduleLanes::ScheduleLanes(const dispatch::Schedule& schedule) : schedule_(schedule) {
  const int shown = std::max(1, kLanesWanted / least_lanes(schedule));
  for (int d = 0; d < static_cast<int>(schedule.devices.size()); ++d) {
    add_device(d, std::min(shown, at(schedule.devices, d).count));
  }
  add_links(shown);
}

void ScheduleLanes::add_device(int device, int shown) {
  const dispatch::Device& of = at(schedule_.devices, device);
  std::string heading = heading_of(clipped(of.name, kNameRoom), shown, of.count);
  for (int server = 0; server < shown; ++server) {
    for (const int stream : streams_of(schedule_, device)) {
      if (lanes_.size() == kMostLanes) return;
      streams_[{device, server, stream}] = static_cast<int>(lanes_.size());
      lanes_.push_back({fmt::format("GPU {}", server), fmt::format("stream {}", stream),
                        fmt::format("{}, GPU {}, stream {}", clipped(of.name), server, stream), heading,
                        picture::Paint::kNone});
      heading.clear();
    }
  }
}

void ScheduleLanes::add_links(int shown) {
  std::string heading = "links";
  for (const Pair& pair : pairs_of(schedule_)) {
    const int count = links_between(schedule_, pair.first, pair.second);
    const std::string from = at(schedule_.devices, pair.first).name;
    const std::string to = at(schedule_.devices, pair.second).name;
    for (int server = 0; server < std::min(shown, count); ++server) {
      if (lanes_.size() == kMostLanes) return;
      links_[{pair.first, pair.second, server}] = static_cast<int>(lanes_.size());
      lanes_.push_back({fmt::format("link {}", server), clipped(fmt::format("{} to {}", from, to), kNameRoom),
                        clipped(fmt::format("link {} of {} from {} to {}", server, count, from, to)), heading,
                        picture::Paint::kNone});
      heading.clear();
    }
  }
}

int ScheduleLanes::lane_of(const dispatch::Work& work) const {
  const auto in = [](const auto& places, const std::tuple<int, int, int>& key) {
    const auto found = places.find(key);
    return found != places.end() ? found->second : -1;
  };
  if (work.segment >= 0) {
    const dispatch::Segment& segment = at(schedule_.segments, work.segment);
    return in(streams_, {segment.device, work.server, segment.stream});
  }
  const dispatch::Copy& copy = at(schedule_.copies, work.copy);
  return in(links_, {copy.from, copy.to, work.server});
}

}  // namespace tangram::app
