// Reads tangram.disaggregation/1, JSON.
//
//   {
//     "schema": "tangram.disaggregation/1",
//     "cluster": { "name": "pair", "digest": "..." },
//     "kernels": ["..."],                                 digests of the kernel graphs
//     "objective": "throughput", "requests_per_micro_batch": 32,
//     "predicted": { ... }, "patterns": [ ... ],          for people
//     "phases": [ { "phase": "decode", "passes": 1, "in_flight": 2, "latency_s": 0.02 } ],
//     "gpus": [ { "gpu": "L40S", "count": 1, ... } ],
//     "links": [ { "from": "L40S", "to": "A100", "lanes": 8 } ],     of pairs with more than one
//     "segments": [
//       { "phase": "decode", "gpu": "L40S", "stream": 1,  0 may be left out
//         "waits": [2], "takes": [0],                     segments; copies that are unpacked first
//         "kernels": ["norm[0]"], "sends": [1],           in their order; copies that are packed behind them
//         "seconds": 1e-05 } ],                           of the kernels
//     "copies": [
//       { "buffer": "normed", "ranges": [ { "offset": 0, "bytes": 4096 } ], "from": "L40S", "to": "A100",
//         "link_seconds": 6e-06, "gpu_seconds": 2e-06 } ]
//   }
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/dispatch/document.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/reader.hpp"
#include "tangram/io/schema.hpp"

namespace tangram::dispatch {

namespace {

constexpr io::IntegerRange kCounted{1, 1'000'000, "no fleet has more"};
constexpr io::IntegerRange kAlike{1, 100'000, "no fleet has more that are alike"};
constexpr io::IntegerRange kStream{0, 2'000'000'000, "streams are numbered from 0"};
constexpr io::IntegerRange kBytes = io::integer_limit("bytes");
constexpr io::IntegerRange kOffset{0, kBytes.max, kBytes.why};
constexpr io::NumberRange kSeconds{0, 1e6, false, false, "seconds, up to eleven days"};
constexpr io::NumberRange kPasses{1e-6, 1e4, false, false, "of one round"};

class ScheduleReader {
 public:
  explicit ScheduleReader(io::ObjectReader& reader) : reader_(reader) {}

  ScheduleFile read() {
    read_origin();
    for (const auto* for_people : {"predicted", "patterns", "objective"}) reader_.ignore(for_people);
    read_phases();
    read_gpus();
    read_links();
    read_copies();
    read_segments();
    reader_.finish();
    if (reader_.sink().empty()) check_copies();
    return std::move(file_);
  }

 private:
  Schedule& schedule() { return file_.schedule; }

  void read_origin() {
    if (auto cluster = reader_.object("cluster")) {
      file_.cluster = cluster->string("name");
      file_.cluster_digest = cluster->string("digest");
      cluster->finish();
    }
    file_.graphs = reader_.strings_if("kernels");
    file_.requests = static_cast<int>(reader_.integer("requests_per_micro_batch", kCounted));
  }

  void read_phases() {
    for (io::ObjectReader& item : reader_.objects("phases")) {
      Phase phase;
      phase.name = item.string("phase");
      phase.passes = item.number("passes", kPasses);
      phase.in_flight = static_cast<int>(item.integer("in_flight", kCounted));
      item.ignore("latency_s");
      item.finish();
      add_name(item, "phase", phase.name, phases_);
      schedule().phases.push_back(std::move(phase));
    }
  }

  void read_gpus() {
    for (io::ObjectReader& item : reader_.objects("gpus")) {
      Device device;
      device.name = item.string("gpu");
      device.count = static_cast<int>(item.integer("count", kAlike));
      for (const auto* for_people : {"busy_s", "memory", "usable_memory"}) item.ignore(for_people);
      item.finish();
      add_name(item, "gpu", device.name, gpus_);
      schedule().devices.push_back(std::move(device));
    }
  }

  static void add_name(io::ObjectReader& item, std::string_view key, const std::string& name,
                       std::vector<std::string>& names) {
    if (std::ranges::find(names, name) != names.end()) {
      item.error_at(key, "duplicate-name", fmt::format("\"{}\" stands here twice", name));
    }
    names.push_back(name);
  }

  static int named(io::ObjectReader& item, std::string_view key, const std::vector<std::string>& names) {
    return static_cast<int>(item.choice_of(key, names).value_or(0));
  }

  void read_links() {
    for (io::ObjectReader& item : reader_.objects_if("links")) {
      Lanes lanes;
      lanes.from = named(item, "from", gpus_);
      lanes.to = named(item, "to", gpus_);
      lanes.count = static_cast<int>(item.integer("lanes", kAlike));
      item.finish();
      schedule().links.push_back(lanes);
    }
  }

  void read_copies() {
    for (io::ObjectReader& item : reader_.objects_if("copies")) {
      Copy copy;
      copy.buffer = item.string("buffer");
      copy.from = named(item, "from", gpus_);
      copy.to = named(item, "to", gpus_);
      copy.seconds = item.number("link_seconds", kSeconds);
      copy.gpu_seconds = item.number("gpu_seconds", kSeconds);
      for (io::ObjectReader& range : item.objects("ranges")) {
        copy.ranges.push_back({range.integer("offset", kOffset), range.integer("bytes", kBytes)});
        range.finish();
      }
      item.finish();
      if (copy.from == copy.to) {
        item.error_at("to", "inconsistent-value", "a copy goes from one GPU type to another");
      }
      schedule().copies.push_back(std::move(copy));
    }
  }

  void read_segments() {
    for (io::ObjectReader& item : reader_.objects("segments")) {
      Segment segment;
      segment.phase = named(item, "phase", phases_);
      segment.device = named(item, "gpu", gpus_);
      segment.stream = static_cast<int>(item.integer_or("stream", 0, kStream));
      segment.waits = numbers(item, "waits", static_cast<int>(schedule().segments.size()), "an earlier segment");
      segment.takes = numbers(item, "takes", static_cast<int>(schedule().copies.size()), "a copy");
      segment.kernels = item.strings_if("kernels");
      segment.sends = numbers(item, "sends", static_cast<int>(schedule().copies.size()), "a copy");
      segment.seconds = item.number("seconds", kSeconds);
      item.finish();
      check_segment(item, segment);
      schedule().segments.push_back(std::move(segment));
    }
  }

  /// Numbers below `end` of what is listed elsewhere.
  static std::vector<int> numbers(io::ObjectReader& item, std::string_view key, int end, std::string_view what) {
    std::vector<int> result;
    const io::Node* node = item.raw(key);
    if (node == nullptr) return result;
    if (node->kind != io::NodeKind::kArray) {
      item.error_at(key, "wrong-type", fmt::format("\"{}\" is a list of numbers", key), "as in [0, 2]");
      return result;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const io::Node& value = node->items[i];
      if (value.kind == io::NodeKind::kInteger && value.integer >= 0 && value.integer < end) {
        result.push_back(static_cast<int>(value.integer));
        continue;
      }
      item.error_at(value, fmt::format("{}/{}/{}", item.pointer(), key, i), "out-of-range",
                    fmt::format("expected the number of {}, of which there are {}", what, end),
                    "they are counted from 0");
    }
    return result;
  }

  void check_segment(io::ObjectReader& item, const Segment& segment) {
    if (segment.kernels.empty() && segment.takes.empty()) {
      item.error_at("kernels", "missing-key", "a segment runs kernels, or takes copies");
    }
    for (const int w : segment.waits) {
      const Segment& waited = at(schedule().segments, w);
      if (waited.phase == segment.phase && waited.device == segment.device) continue;
      item.error_at("waits", "inconsistent-value",
                    fmt::format("segment {} is of another GPU type or phase, which only copies wait for", w));
    }
    for (const int c : segment.takes) {
      if (at(schedule().copies, c).to != segment.device) wrong_end(item, "takes", c, "to");
      const auto sent = sent_in_.find(c);
      if (sent == sent_in_.end() || sent->second != segment.phase) {
        item.error_at("takes", "inconsistent-value", fmt::format("no earlier segment of the phase sends copy {}", c));
      }
      if (++taken_[c] > 1) item.error_at("takes", "duplicate-name", fmt::format("copy {} is taken twice", c));
    }
    for (const int c : segment.sends) {
      if (at(schedule().copies, c).from != segment.device) wrong_end(item, "sends", c, "from");
      if (!sent_in_.emplace(c, segment.phase).second) {
        item.error_at("sends", "duplicate-name", fmt::format("copy {} is sent twice", c));
      }
    }
  }

  static void wrong_end(io::ObjectReader& item, std::string_view key, int copy, std::string_view end) {
    item.error_at(key, "inconsistent-value", fmt::format("copy {} goes {} another GPU type", copy, end));
  }

  void check_copies() {
    for (int c = 0; c < static_cast<int>(schedule().copies.size()); ++c) {
      if (taken_.contains(c)) continue;
      reader_.error_at("copies", "inconsistent-value", fmt::format("no segment takes copy {}", c),
                       "each copy is sent by one segment and taken by another");
    }
  }

  io::ObjectReader& reader_;
  ScheduleFile file_;
  std::vector<std::string> phases_;
  std::vector<std::string> gpus_;
  std::map<int, int> sent_in_;  // by copy: phase
  std::map<int, int> taken_;    // by copy: how often
};

}  // namespace

Expected<ScheduleFile> read_schedule(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  if (!reader.valid() || !io::has_schema(reader, "tangram.disaggregation/1")) return fail(std::move(mistakes));
  ScheduleFile schedule = ScheduleReader(reader).read();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return schedule;
}

}  // namespace tangram::dispatch
