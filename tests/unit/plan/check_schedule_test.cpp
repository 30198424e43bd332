// The judge's closed form against schedules worked out by hand.
#include "findings.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::plan;

namespace {

struct Line {
  std::int64_t forward, backward, exposed, optimizer, latency, in_flight;
};

struct Judged {
  Nanoseconds time;
  std::vector<Violation> violations;
  [[nodiscard]] bool has(const std::string& code) const {
    for (const auto& violation : violations) {
      if (violation.code == code) return true;
    }
    return false;
  }
};

Judged judge(const std::vector<Line>& lines, std::int64_t microbatches, std::int64_t written = 0,
             runtime::Target runtime = runtime::Target::kGeneric) {
  LaunchPlan plan;
  plan.runtime = runtime;
  Pipeline pipeline;
  pipeline.microbatches = microbatches;
  Recomputed recomputed;
  for (std::size_t s = 0; s < lines.size(); ++s) {
    const Line& line = lines[s];
    Part part;
    part.predicted.forward = Nanoseconds(line.forward);
    part.predicted.backward = Nanoseconds(line.backward);
    part.predicted.gradient_sync_exposed = Nanoseconds(line.exposed);
    part.predicted.optimizer_step = Nanoseconds(line.optimizer);
    part.predicted.in_flight = line.in_flight;
    Stage stage;
    stage.id = static_cast<int>(s);
    stage.warmup = line.in_flight - 1;
    stage.parts = {part};
    recomputed.push_back({{true, part.predicted}});
    pipeline.stages.push_back(stage.id);
    plan.stages.push_back(stage);
    if (s + 1 < lines.size()) {
      Boundary boundary;
      boundary.from = stage.id;
      boundary.to = stage.id + 1;
      boundary.latency = Nanoseconds(line.latency);
      plan.boundaries.push_back(boundary);
    }
  }
  plan.pipelines = {pipeline};
  plan.predicted.closed_form = Nanoseconds(written);
  Findings findings;
  const Nanoseconds time = check_schedule(plan, recomputed, findings);
  return {time, std::move(findings).take()};
}

}  // namespace

TEST_CASE("equal stages without latency: S + M - 1 periods") {
  // Eight stages of 100 (40 + 60) and 4 microbatches: 800 + 3 x 100 = 1100.
  std::vector<Line> lines;
  for (std::int64_t s = 0; s < 8; ++s) lines.push_back({40, 60, 0, 0, 0, std::min<std::int64_t>(8 - s, 4)});
  const Judged judged = judge(lines, 4, 1100);
  CHECK(judged.time == Nanoseconds(1100));
  CHECK(judged.violations.empty());
}

TEST_CASE("the slowest stage sets the period wherever it stands") {
  // 100, 200, 100; M = 10: Lat 400 + 9 x 200 = 2200. x of the last stage 100 -> n 1, Q 100; middle x = 300, n = 2,
  // Q = 200 + 200 = 400; first x = 500, n = 3.
  CHECK(judge({{50, 50, 0, 0, 0, 3}, {100, 100, 0, 0, 0, 2}, {50, 50, 0, 0, 0, 1}}, 10, 2200).violations.empty());
}

TEST_CASE("a slow link needs extra microbatches in flight, or a longer period") {
  // Two stages of 100, c = 60, M = 10. Last: x = 100, n = 1, Q = 100. First: x = 100 + 120 + 100 = 320.
  // P = 100 needs ceil(3.2) = 4 in flight: t = (100 + 120 + 100) + 9 x 100 = 1220.
  const Judged enough = judge({{40, 60, 0, 0, 60, 4}, {40, 60, 0, 0, 0, 1}}, 10, 1220);
  CHECK(enough.time == Nanoseconds(1220));
  CHECK(enough.violations.empty());
  // With 2 in flight x / P must fall to 2: P = 160, t = 320 + 9 x 160 = 1760.
  const Judged classic = judge({{40, 60, 0, 0, 60, 2}, {40, 60, 0, 0, 0, 1}}, 10, 1760);
  CHECK(classic.time == Nanoseconds(1760));
  CHECK(classic.violations.empty());
  // Claiming 1220 with 2 in flight is refused, and says what is missing.
  const Judged claimed = judge({{40, 60, 0, 0, 60, 2}, {40, 60, 0, 0, 0, 1}}, 10, 1220);
  CHECK(claimed.has("in-flight-low"));
  CHECK(claimed.has("closed-form-differs"));
}

TEST_CASE("few microbatches are all in flight, whatever the recursion asks for") {
  // As above with M = 2: both microbatches are in flight, so nothing limits P but T: t = 320 + 100.
  CHECK(judge({{40, 60, 0, 0, 60, 2}, {40, 60, 0, 0, 0, 1}}, 2, 420).violations.empty());
}

TEST_CASE("gradient synchronisation binds where the drain does not hide it") {
  // Last stage: A = 100 + 500 = 600. First: a = max(600 + F 40 + c 0, A 100 + Lat 100) = 640; Lat = 200.
  // t = 640 + 3 x 100 + max o 7 = 947.
  CHECK(judge({{40, 60, 0, 5, 0, 2}, {40, 60, 500, 7, 0, 1}}, 4, 947).violations.empty());
}

TEST_CASE("where transfers block, a period holds a stage's passes and both of its boundaries") {
  // Stages of 100, c = 20 and 30, M = 10: the middle one keeps 20 + 100 + 30 of a period. Lat = 300 + 2 x 50 = 400,
  // t = 400 + 9 x 150 = 1750. Beside the passes P is 134: (300 + 100) / 3 in flight, rounded up.
  const std::vector<Line> lines{{40, 60, 0, 0, 20, 3}, {40, 60, 0, 0, 30, 2}, {40, 60, 0, 0, 0, 1}};
  const Judged stopping = judge(lines, 10, 1750, runtime::Target::kMegatron);
  CHECK(stopping.time == Nanoseconds(1750));
  CHECK(stopping.violations.empty());
  CHECK(judge(lines, 10, 400 + 9 * 134).violations.empty());
}

TEST_CASE("where transfers block, every other warm-up is a mistake") {
  const auto codes = [](std::int64_t first) {
    const std::vector<Line> lines{{40, 60, 0, 0, 20, first}, {40, 60, 0, 0, 30, 2}, {40, 60, 0, 0, 0, 1}};
    return judge(lines, 10, 1750, runtime::Target::kFlagscale);
  };
  CHECK_FALSE(codes(3).has("warmup-not-classic"));
  CHECK(codes(4).has("warmup-not-classic"));
  CHECK(codes(2).has("warmup-not-classic"));
  // Two microbatches are all that a first stage of three can have in flight.
  const std::vector<Line> few{{40, 60, 0, 0, 20, 2}, {40, 60, 0, 0, 30, 2}, {40, 60, 0, 0, 0, 1}};
  CHECK(judge(few, 2, 400 + 150, runtime::Target::kMegatron).violations.empty());
}

TEST_CASE("one microbatch") {
  // Lat = 100 + 2 x 30 + 100 = 260, no period.
  CHECK(judge({{40, 60, 0, 0, 30, 1}, {40, 60, 0, 0, 0, 1}}, 1, 260).violations.empty());
}

TEST_CASE("a stage without room for one microbatch behind the next is infeasible") {
  CHECK(judge({{40, 60, 0, 0, 0, 1}, {40, 60, 0, 0, 0, 1}}, 4, 1000).has("in-flight-low"));
}

TEST_CASE("numbers beyond all bounds do not overflow") {
  const std::int64_t huge = std::int64_t{1} << 60;
  CHECK(judge({{huge, huge, huge, huge, huge, 2}, {huge, huge, huge, huge, huge, 1}}, huge, huge).time >
        Nanoseconds(0));
}
