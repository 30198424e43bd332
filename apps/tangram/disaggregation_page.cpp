#include "disaggregation_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "page_text.hpp"
#include "schedule_lanes.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/dispatch/timeline.hpp"
#include "tangram/picture/bar_chart.hpp"
#include "tangram/picture/page.hpp"
#include "tangram/picture/timeline.hpp"

namespace tangram::app {

namespace {

using picture::element;
using picture::Markup;
using picture::section;
using picture::text;

/// Seconds of a round on each GPU type, and on each link by sender and receiver.
struct Loads {
  std::vector<double> devices;
  std::vector<int> segments;  ///< by device: of one pass of each phase
  std::map<std::pair<int, int>, double> links;
  std::map<std::pair<int, int>, double> bytes;  ///< of a round
};

Loads loads_of(const dispatch::Schedule& schedule) {
  Loads loads;
  loads.devices.resize(schedule.devices.size());
  loads.segments.resize(schedule.devices.size());
  for (const dispatch::Segment& segment : schedule.segments) {
    const double passes = at(schedule.phases, segment.phase).passes;
    double seconds = segment.seconds;
    for (const int c : segment.takes) seconds += at(schedule.copies, c).gpu_seconds;
    for (const int c : segment.sends) {
      const dispatch::Copy& copy = at(schedule.copies, c);
      seconds += copy.gpu_seconds;
      loads.links[{copy.from, copy.to}] += passes * copy.seconds;
      loads.bytes[{copy.from, copy.to}] += passes * static_cast<double>(copy.bytes());
    }
    at(loads.devices, segment.device) += passes * seconds;
    ++at(loads.segments, segment.device);
  }
  return loads;
}

Markup share_of(double seconds, int count, double period) {
  const double share = period > 0 ? seconds / count / period : 0;
  const std::string words = people_percent(share);
  return text(words) + picture::meter(share, words);
}

Markup loads_table(const dispatch::Schedule& schedule, double period) {
  const Loads loads = loads_of(schedule);
  std::vector<std::vector<Markup>> rows;
  for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
    const dispatch::Device& device = schedule.devices[d];
    rows.push_back({text(clipped(device.name)), text(fmt::format("{}", device.count)),
                    text(counted(at(loads.segments, d), "segment")),
                    text(people_time(at(loads.devices, d) / device.count)),
                    share_of(at(loads.devices, d), device.count, period)});
  }
  for (const auto& [pair, seconds] : loads.links) {
    const int count = links_between(schedule, pair.first, pair.second);
    rows.push_back({text(clipped(fmt::format("{} to {}", at(schedule.devices, pair.first).name,
                                             at(schedule.devices, pair.second).name))),
                    text(fmt::format("{}", count)),
                    text(message_bytes(ceil_to_bytes(loads.bytes.at(pair))) + " a round"),
                    text(people_time(seconds / count)), share_of(seconds, count, period)});
  }
  constexpr std::size_t kMostRows = 200;
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  return picture::table({{"GPUs and links"}, {"count", true}, {"what"}, {"busy in a period", true}, {"load"}}, rows);
}

std::string kernels_text(const dispatch::Segment& segment) {
  constexpr std::size_t kRoom = 48;
  if (segment.kernels.empty()) return "only takes";
  const std::string first = clipped(segment.kernels.front(), kRoom);
  if (segment.kernels.size() == 1) return first;
  return fmt::format("{} kernels, {} to {}", segment.kernels.size(), first, clipped(segment.kernels.back(), kRoom));
}

std::string title_of(const dispatch::Schedule& schedule, const dispatch::Work& work) {
  if (work.segment >= 0) {
    const dispatch::Segment& segment = at(schedule.segments, work.segment);
    return fmt::format("micro-batch {} of {}: {}", work.pass, clipped(at(schedule.phases, segment.phase).name, 24),
                       kernels_text(segment));
  }
  const dispatch::Copy& copy = at(schedule.copies, work.copy);
  return fmt::format("micro-batch {}: {} of {}", work.pass, message_bytes(Bytes(copy.bytes())),
                     clipped(copy.buffer, 48));
}

Nanoseconds nanoseconds(double seconds) { return Nanoseconds(std::llround(seconds * 1e9)); }

/// Long enough to be in the steady state, and short enough for a page.
double rounds_drawn(const dispatch::Schedule& schedule) {
  constexpr double kMostWork = 3e5;
  double wanted = 4;
  double work = 1;  // of a round
  for (const dispatch::Phase& phase : schedule.phases) {
    wanted = std::max(wanted, std::ceil(4.0 * phase.in_flight / phase.passes));
    work += phase.passes * static_cast<double>(schedule.segments.size() + schedule.copies.size());
  }
  return std::max(1.0, std::min(wanted, std::floor(kMostWork / work)));
}

Markup runs_of(const dispatch::Schedule& schedule) {
  const dispatch::Recording recording = dispatch::recorded(schedule, rounds_drawn(schedule));
  const ScheduleLanes lanes(schedule);
  picture::Timeline timeline;
  timeline.description = "when each stream runs its segments, and each link its copies";
  timeline.lanes = lanes.all();
  std::vector<const dispatch::Work*> drawn;
  for (const dispatch::Work& work : recording.work) {
    const int lane = lanes.lane_of(work);
    const picture::Span span{lane, nanoseconds(work.begin), nanoseconds(work.end)};
    if (lane < 0 || span.start == span.end) continue;
    timeline.spans.push_back(span);
    drawn.push_back(&work);
    timeline.label_room = std::max(timeline.label_room, fmt::formatted_size("{}", work.pass));
  }
  timeline.end = nanoseconds(recording.end);
  timeline.look = [&](std::size_t s) {
    const dispatch::Work& work = *at(drawn, s);
    return picture::SpanLook{picture::series(static_cast<std::size_t>(work.pass)), 0, fmt::format("{}", work.pass),
                             title_of(schedule, work)};
  };
  return picture::paragraph("Colours and numbers are micro-batches; each keeps to one GPU of a type.") +
         picture::timeline(timeline);
}

std::vector<picture::Fact> facts_of(const dispatch::ScheduleFile& file, const dispatch::Periods& periods) {
  std::vector<picture::Fact> facts;
  if (!file.cluster.empty()) facts.push_back({"fleet", clipped(file.cluster)});
  std::vector<std::string> gpus;
  for (const dispatch::Device& device : file.schedule.devices) {
    gpus.push_back(fmt::format("{} x {}", device.count, clipped(device.name)));
  }
  facts.push_back({"GPUs", clipped(fmt::format("{}", fmt::join(gpus, ", ")), 4 * kLongestText)});
  constexpr std::size_t kMostPhases = 16;
  for (const dispatch::Phase& phase : file.schedule.phases) {
    if (facts.size() > kMostPhases) break;
    facts.push_back({"phase", fmt::format("{}: {:.4g} {} a round, {} in flight", clipped(phase.name), phase.passes,
                                          phase.passes == 1 ? "pass" : "passes", phase.in_flight)});
  }
  facts.push_back({"batch", counted(file.requests, "request") + " a micro-batch"});
  facts.push_back({"period", fmt::format("{}; {} as resources allow it", people_time(periods.simulated),
                                         people_time(periods.allowed))});
  return facts;
}

Markup in_flight_chart(const std::vector<InFlight>& rows, int taken) {
  std::vector<picture::Bar> bars;
  for (const InFlight& row : rows) {
    bars.push_back({fmt::format("{} in flight", row.in_flight), row.simulated,
                    fmt::format("{} ({})", people_time(row.simulated), people_percent(row.period / row.simulated)),
                    row.in_flight == taken ? picture::Paint::kOurs : picture::Paint::kTheirs});
  }
  return picture::paragraph("The period, and in brackets how near it comes to what resources allow.") +
         picture::bar_chart(bars, "period with other numbers of micro-batches in flight");
}

}  // namespace

std::string schedule_page(const dispatch::ScheduleFile& file, const std::vector<InFlight>& rows) {
  const dispatch::Schedule& schedule = file.schedule;
  const dispatch::Periods periods = dispatch::periods_of(schedule);
  picture::Page page;
  page.title = file.cluster.empty() ? "Kernels on mixed GPUs" : clipped("Kernels on " + file.cluster);
  page.has_timelines = true;
  page.body = element("header", {}, element("h1", {}, page.title) + picture::facts(facts_of(file, periods)));
  page.body += section("Streams and links", runs_of(schedule));
  page.body += section("Load", loads_table(schedule, periods.simulated));
  page.body += section("More in flight", in_flight_chart(rows, schedule.phases.front().in_flight));
  return picture::written(page);
}

}  // namespace tangram::app
