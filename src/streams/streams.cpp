#include "tangram/streams/streams.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::streams {

namespace {

// A pass under way.
struct Place {
  int kind = 0;
  int number = 0;  // of its kind's places: which server of a resource it keeps to
  int way = 0;
  std::int64_t pass = -1;      // of the kind; -1: none now
  std::int64_t age = 0;        // passes of all kinds that began before
  std::vector<int> waits_for;  // by segment: how many others
  int left = 0;                // segments
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, Priority priority, bool record)
      : schedule_(schedule),
        priority_(priority),
        record_(record),
        result_{{}, std::vector<double>(schedule.servers.size(), 0), 0} {
    for (const int servers : schedule.servers) {
      TANGRAM_ASSERT(servers > 0);
      first_server_.push_back(static_cast<int>(ready_.size()));
      ready_.resize(ready_.size() + static_cast<std::size_t>(servers));
    }
    is_busy_.assign(ready_.size(), 0);
    for (int kind = 0; kind < static_cast<int>(schedule.kinds.size()); ++kind) add_kind(kind);
  }

  Run run() && {
    begin_passes(0);
    start_ready(0);
    while (!events_.empty()) {
      const double now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        if (event.segment >= 0) end_segment(event, now);
      }
      begin_passes(now);
      start_ready(now);
    }
    return std::move(result_);
  }

 private:
  struct Event {
    double time = 0;
    std::int64_t serial = 0;
    int place = 0;
    int segment = 0;  // that ends; -1: a pass arrives

    bool operator>(const Event& other) const { return std::tie(time, serial) > std::tie(other.time, other.serial); }
  };
  struct Ready {
    std::int64_t age = 0;
    int segment = 0;
    int place = 0;

    bool operator>(const Ready& other) const {
      return std::tie(age, segment, place) > std::tie(other.age, other.segment, other.place);
    }
  };
  using Queue = std::priority_queue<Ready, std::vector<Ready>, std::greater<>>;

  void add_kind(int kind) {
    const PassKind& of = at(schedule_.kinds, kind);
    TANGRAM_ASSERT(of.in_flight > 0 && !of.ways.empty());
    TANGRAM_ASSERT(of.arrivals.empty() || static_cast<std::int64_t>(of.arrivals.size()) == of.passes);
    result_.passes.emplace_back(static_cast<std::size_t>(of.passes));
    begun_.push_back(0);
    for (int i = 0; i < of.in_flight; ++i) {
      Place& place = places_.emplace_back();
      place.kind = kind;
      place.number = i;
    }
    followers_.emplace_back();
    for (const std::vector<Segment>& way : of.ways) add_way(way);
    for (const double arrival : of.arrivals) events_.push({arrival, serial_++, 0, -1});
  }

  void add_way(const std::vector<Segment>& segments) {
    TANGRAM_ASSERT(!segments.empty());
    std::vector<std::vector<int>>& next = followers_.back().emplace_back(segments.size());
    for (int s = 0; s < static_cast<int>(segments.size()); ++s) {
      for (const int before : at(segments, s).after) {
        TANGRAM_ASSERT(before < s);
        at(next, before).push_back(s);
      }
    }
  }

  // Passes get places as these are free, in the order of places.
  void begin_passes(double now) {
    for (int p = 0; p < static_cast<int>(places_.size()); ++p) {
      Place& place = at(places_, p);
      const PassKind& kind = at(schedule_.kinds, place.kind);
      std::int64_t& begun = at(begun_, place.kind);
      if (place.pass >= 0 || begun == kind.passes) continue;
      if (!kind.arrivals.empty() && at(kind.arrivals, begun) > now) continue;
      place.way = kind.way_of(begun);
      place.pass = begun++;
      place.age = age_++;
      at(at(result_.passes, place.kind), place.pass).begin = now;
      const std::vector<Segment>& segments = at(kind.ways, place.way);
      place.left = static_cast<int>(segments.size());
      place.waits_for.clear();
      for (int s = 0; s < place.left; ++s) {
        place.waits_for.push_back(static_cast<int>(at(segments, s).after.size()));
        if (place.waits_for.back() == 0) make_ready(p, s);
      }
    }
  }

  [[nodiscard]] const Segment& segment_of(int place, int segment) const {
    const Place& of = at(places_, place);
    return at(at(at(schedule_.kinds, of.kind).ways, of.way), segment);
  }

  [[nodiscard]] int server_of(int place, int resource) const {
    return at(first_server_, resource) + at(places_, place).number % at(schedule_.servers, resource);
  }

  void make_ready(int place, int segment) {
    const std::int64_t age = priority_ == Priority::kOldestPass ? at(places_, place).age : serial_++;
    at(ready_, server_of(place, segment_of(place, segment).resource)).push({age, segment, place});
  }

  void start_ready(double now) {
    for (int server = 0; server < static_cast<int>(ready_.size()); ++server) {
      Queue& queue = at(ready_, server);
      if (at(is_busy_, server) != 0 || queue.empty()) continue;
      const Ready next = queue.top();
      queue.pop();
      at(is_busy_, server) = 1;
      const double end = now + segment_of(next.place, next.segment).seconds;
      events_.push({end, serial_++, next.place, next.segment});
      if (record_) record(next, now, end);
    }
  }

  void record(const Ready& begun, double begin, double end) {
    const Place& place = at(places_, begun.place);
    const int resource = segment_of(begun.place, begun.segment).resource;
    const int server = server_of(begun.place, resource) - at(first_server_, resource);
    result_.work.push_back({place.kind, place.pass, begun.segment, server, begin, end});
  }

  void end_segment(const Event& event, double now) {
    Place& place = at(places_, event.place);
    const Segment& segment = segment_of(event.place, event.segment);
    at(is_busy_, server_of(event.place, segment.resource)) = 0;
    at(result_.busy, segment.resource) += segment.seconds;
    result_.end = now;
    for (const int next : at(at(at(followers_, place.kind), place.way), event.segment)) {
      if (--at(place.waits_for, next) == 0) make_ready(event.place, next);
    }
    if (--place.left > 0) return;
    at(at(result_.passes, place.kind), place.pass).end = now;
    place.pass = -1;
  }

  const Schedule& schedule_;
  const Priority priority_;
  const bool record_;
  Run result_;
  std::vector<Place> places_;
  std::vector<std::int64_t> begun_;                                    // by kind
  std::vector<std::vector<std::vector<std::vector<int>>>> followers_;  // by kind, way and segment
  std::vector<int> first_server_;                                      // by resource
  std::vector<Queue> ready_;                                           // by server
  std::vector<char> is_busy_;                                          // by server
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t serial_ = 0;
  std::int64_t age_ = 0;
};

}  // namespace

int PassKind::way_of(std::int64_t pass) const {
  return turns.empty() ? 0 : at(turns, pass % static_cast<std::int64_t>(turns.size()));
}

double Run::period(int kind) const {
  const std::vector<PassTimes>& all = at(passes, kind);
  if (all.empty()) return 0;
  std::vector<double> ends;
  for (const PassTimes& pass : all) ends.push_back(pass.end);
  std::ranges::sort(ends);
  if (ends.size() == 1) return all.front().end - all.front().begin;
  // Once the last one has begun, places are no longer taken again.
  const auto steady = static_cast<std::size_t>(std::ranges::upper_bound(ends, all.back().begin) - ends.begin());
  constexpr std::size_t kFew = 4;
  if (steady >= kFew) ends.resize(steady);
  const std::size_t first = std::min(ends.size() / 3, ends.size() - 2);
  return (ends.back() - ends[first]) / static_cast<double>(ends.size() - 1 - first);
}

double Run::mean_latency(int kind) const {
  const std::vector<PassTimes>& all = at(passes, kind);
  double sum = 0;
  int count = 0;
  for (std::size_t p = all.size() / 3; p < all.size(); ++p) {
    if (all[p].end > all.back().begin && all.size() > 1) continue;
    sum += all[p].end - all[p].begin;
    ++count;
  }
  if (count > 0) return sum / count;
  for (const PassTimes& pass : all) sum += pass.end - pass.begin;
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

Run run(const Schedule& schedule, Priority priority, bool record) {
  return Simulation(schedule, priority, record).run();
}

}  // namespace tangram::streams
