// Schedules as files, and how long they take.
#include "tangram/dispatch/document.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include <algorithm>
#include "small_model.hpp"

#include "support/catch.hpp"
#include "support/schedules.hpp"
#include "tangram/dispatch/lower.hpp"
#include "tangram/dispatch/timeline.hpp"

using namespace tangram;
using namespace tangram::dispatch;
using namespace tangram::testing;

namespace {

nlohmann::ordered_json document_of(const Schedule& schedule) {
  nlohmann::ordered_json phases = nlohmann::ordered_json::array();
  for (const Phase& phase : schedule.phases) {
    phases.push_back({{"phase", phase.name}, {"passes", phase.passes}, {"in_flight", phase.in_flight}});
  }
  nlohmann::ordered_json gpus = nlohmann::ordered_json::array();
  for (const Device& device : schedule.devices) gpus.push_back({{"gpu", device.name}, {"count", device.count}});
  return {{"schema", "tangram.disaggregation/1"},
          {"cluster", {{"name", "pair"}, {"digest", "0"}}},
          {"kernels", {"1"}},
          {"requests_per_micro_batch", 4},
          {"phases", phases},
          {"gpus", gpus},
          {"links", links_json(schedule)},
          {"segments", segments_json(schedule)},
          {"copies", copies_json(schedule)}};
}

Schedule small_schedule() {
  const SmallModel model = small_model(2);
  std::mt19937_64 random(7);
  Schedule schedule = lowered(model.graph, random_placement(model.graph, 2, random), devices(2));
  for (std::size_t s = 0; s < schedule.segments.size(); ++s)
    schedule.segments[s].seconds = 1e-6 * static_cast<double>(s);
  for (Copy& copy : schedule.copies) copy.seconds = 3e-6;
  schedule.links.push_back({0, 1, 2});
  schedule.phases.front().in_flight = 3;
  return schedule;
}

std::string mistakes_of(const nlohmann::ordered_json& document) {
  const auto file = read_schedule(document.dump(1), "s.json");
  if (file) return "";
  std::string all;
  for (const Diagnostic& mistake : file.error()) all += mistake.pointer + ": " + mistake.message + "\n";
  return all;
}

}  // namespace

TEST_CASE("dispatch: a schedule is read as it was written") {
  const Schedule schedule = small_schedule();
  const auto file = read_schedule(document_of(schedule).dump(1), "s.json");
  if (!file) FAIL(render(file.error()));
  CHECK(file->schedule == schedule);
  CHECK(file->requests == 4);
  CHECK(file->graphs == std::vector<std::string>{"1"});
}

TEST_CASE("dispatch: mistakes of a schedule carry their places") {
  const auto good = document_of(small_schedule());
  auto bad = good;
  bad["segments"][0]["waits"] = {0};
  bad["segments"][1]["gpu"] = "C";
  bad["copies"][0]["ranges"][0]["bytes"] = 0;
  bad["copies"][1]["color"] = 1;
  const std::string found = mistakes_of(bad);
  INFO(found);
  CHECK(found.find("/segments/0/waits/0: expected the number of an earlier segment") != std::string::npos);
  CHECK(found.find("/segments/1/gpu: ") != std::string::npos);
  CHECK(found.find("/copies/0/ranges/0/bytes: ") != std::string::npos);
  CHECK(found.find("/copies/1/color: unknown key") != std::string::npos);
}

TEST_CASE("dispatch: each copy is sent once and taken once") {
  const auto good = document_of(small_schedule());
  for (const std::string key : {"takes", "sends"}) {
    auto bad = good;
    for (auto& segment : bad["segments"]) segment.erase(key);
    CHECK(mistakes_of(bad).find(key == "takes" ? "no segment takes copy 0" : "no earlier segment of the phase sends") !=
          std::string::npos);
  }
}

TEST_CASE("dispatch: the period of two segments and a copy, by hand") {
  // A works 10 us and packs for 1 us, the link takes 4 us, B unpacks for 1 us and works 5 us: 21 us alone. One pass in
  // flight takes that, of two A is the bottleneck with 11 us.
  Schedule schedule;
  schedule.devices = devices(2);
  schedule.phases = {{"step", 1, 1}};
  schedule.copies = {{"x", {{0, 8}}, 0, 1, 4e-6, 1e-6}};
  schedule.segments = {{0, 0, 0, {"a"}, {}, {}, {0}, 10e-6}, {0, 1, 0, {"b"}, {}, {0}, {}, 5e-6}};
  CHECK(periods_of(schedule).allowed == Approx(21e-6));
  CHECK(periods_of(schedule).simulated == Approx(21e-6));
  CHECK(periods_of(schedule, 2).allowed == Approx(11e-6));
  CHECK(periods_of(schedule, 2).simulated == Approx(11e-6));
  // One pass in a million rounds: that all places are taken several times takes more rounds than an int counts.
  schedule.phases.front().passes = 1e-6;
  CHECK(periods_of(schedule, 1000).simulated == Approx(11e-12));
}

TEST_CASE("dispatch: what ran when of two segments and a copy, by hand") {
  // As above, two micro-batches in flight, two rounds: A is busy until 11 and 22 us, the link 4 us behind each, then B
  // for 6 us.
  Schedule schedule;
  schedule.devices = devices(2);
  schedule.phases = {{"empty", 1, 1}, {"step", 1, 2}};
  schedule.copies = {{"x", {{0, 8}}, 0, 1, 4e-6, 1e-6}};
  schedule.segments = {{1, 0, 0, {"a"}, {}, {}, {0}, 10e-6}, {1, 1, 0, {"b"}, {}, {0}, {}, 5e-6}};
  const Recording recording = recorded(schedule, 2);
  CHECK(recording.end == Approx(32e-6));
  REQUIRE(recording.work.size() == 6);
  struct Expected {
    int segment, copy, pass;
    double begin, end;
  };
  const Expected expected[] = {{0, -1, 0, 0, 11},  {-1, 0, 0, 11, 15}, {0, -1, 1, 11, 22},
                               {1, -1, 0, 15, 21}, {-1, 0, 1, 22, 26}, {1, -1, 1, 26, 32}};
  for (const Expected& e : expected) {
    const auto same = [&](const Work& w) { return w.segment == e.segment && w.copy == e.copy && w.pass == e.pass; };
    const auto work = std::find_if(recording.work.begin(), recording.work.end(), same);
    REQUIRE(work != recording.work.end());
    CHECK(work->begin == Approx(e.begin * 1e-6));
    CHECK(work->end == Approx(e.end * 1e-6));
  }
}
